/** How far the server's reading of a run is, asked while the page waits for an answer about it. */
import { useEffect, useState } from 'preact/hooks';
import { fetchProgress } from '../api/client';
import type { Reading } from '../api/types';
import { format } from '../base/units';

const FIRST_AFTER_MS = 500;
const AGAIN_AFTER_MS = 500;

export interface ReadingText {
  text: string;
  /** 0–1; null where one host is read, of which nobody knows how far it is. */
  fraction: number | null;
}

/** The standing in words. */
export function readingText(reading: Reading): ReadingText {
  const size = format(reading.size_bytes, 'bytes');
  if (reading.n_hosts === 1) return { text: `${reading.host}, ${size}`, fraction: null };
  const done = `${reading.n_done} of ${reading.n_hosts} hosts, ${format(reading.done_bytes, 'bytes')} of ${size}`;
  return {
    text: reading.host ? `${done}: ${reading.host}` : done,
    fraction: reading.size_bytes ? reading.done_bytes / reading.size_bytes : null,
  };
}

/**
 * What is being read of the run, from half a second after the first time that this is rendered; an empty run
 * asks nothing.
 */
export function useReading(run: string): ReadingText | null {
  const [reading, setReading] = useState<Reading | null>(null);
  useEffect(() => {
    if (!run) return;
    let timer = 0;
    let isOver = false;
    const ask = async (): Promise<void> => {
      // Without an answer the page still says what it waits for and since when.
      const answer = await fetchProgress(run).catch(() => null);
      if (isOver) return;
      setReading(answer?.reading ?? null);
      timer = window.setTimeout(() => void ask(), AGAIN_AFTER_MS);
    };
    timer = window.setTimeout(() => void ask(), FIRST_AFTER_MS);
    return () => {
      isOver = true;
      window.clearTimeout(timer);
    };
  }, [run]);
  return reading && readingText(reading);
}
