/** Progress of the server's reading of a run, polled while the page waits for an answer about it. */
import { useEffect, useState } from 'preact/hooks';
import { fetchProgress } from '../api/client';
import type { Reading } from '../api/types';
import { format } from '../base/units';

const FIRST_AFTER_MS = 500;
const AGAIN_AFTER_MS = 500;

export interface ReadingText {
  text: string;
  /** 0–1; null if only one host is read, whose progress is unknown. */
  fraction: number | null;
}

/** The progress in words. */
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
 * The progress of reading the run, starting half a second after the first render; an empty run sends no
 * request.
 */
export function useReading(run: string): ReadingText | null {
  const [reading, setReading] = useState<Reading | null>(null);
  useEffect(() => {
    if (!run) return;
    let timer = 0;
    let isOver = false;
    const poll = async (): Promise<void> => {
      // Without an answer the page still shows what it waits for and since when.
      const answer = await fetchProgress(run).catch(() => null);
      if (isOver) return;
      setReading(answer?.reading ?? null);
      timer = window.setTimeout(() => void poll(), AGAIN_AFTER_MS);
    };
    timer = window.setTimeout(() => void poll(), FIRST_AFTER_MS);
    return () => {
      isOver = true;
      window.clearTimeout(timer);
    };
  }, [run]);
  return reading && readingText(reading);
}
