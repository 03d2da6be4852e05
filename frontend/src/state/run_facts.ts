/**
 * What the sidebar shows of runs beyond the lists of runs and tools: their devices and frameworks, and the
 * numbers next to tools. Requested late and a few at a time, so that no page waits for it.
 */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { fetchFresh } from '../api/client';
import type { BadgesAnswer, RunCard } from '../api/types';
import { shown } from './payload';
import { run } from './selection';

const AT_A_TIME = 2;
/** Without a page, such as that of a damaged run, its card is requested after this time. */
const WAIT_MS = 3000;

/** By run; runs that have not been asked about are absent. */
export const cards = signal<ReadonlyMap<string, RunCard>>(new Map());
/** The texts next to tools of the run on display, by tool. */
export const badges = signal<Readonly<Record<string, string>>>({});

const waiting: string[] = [];
const asked = new Set<string>();
let nUnderWay = 0;

function next(): void {
  // The runs scrolled to last are those on screen.
  const name = nUnderWay < AT_A_TIME ? waiting.pop() : undefined;
  if (name === undefined) return;
  nUnderWay++;
  fetchFresh<RunCard>('card', { run: name })
    .then((card) => {
      cards.value = new Map(cards.value).set(name, card);
    })
    // The list says what it knows without it; the run can be asked about again.
    .catch(() => asked.delete(name))
    .finally(() => {
      nUnderWay--;
      next();
    });
  next();
}

/** Requests the card of a run, once. */
export function askForCard(name: string): void {
  if (!name || asked.has(name)) return;
  asked.add(name);
  waiting.push(name);
  next();
}

/** Forgets the cards: files may have changed. */
export function forgetCards(): void {
  asked.clear();
  waiting.length = 0;
  cards.value = new Map();
}

/** Keeps card and badges of the run on display up to date. */
export function useRunFacts(): void {
  const name = run.value;
  const page = shown.value;
  useEffect(() => {
    badges.value = {};
  }, [name]);
  useEffect(() => {
    if (page) askForCard(name);
    const timer = window.setTimeout(() => askForCard(name), WAIT_MS);
    return () => window.clearTimeout(timer);
  }, [name, page === null]);
  useEffect(() => {
    if (!name || page?.payload.run !== name) return;
    fetchFresh<BadgesAnswer>('badges', { run: name }).then(
      (answer) => {
        if (run.value === name) badges.value = answer.badges;
      },
      // Pages do without.
      () => undefined,
    );
  }, [name, page?.payload]);
}
