/** A part of the page whose code is loaded when it is first shown. */
import { useEffect, useState } from 'preact/hooks';

export interface Lazy<T> {
  part: T | null;
  error: unknown;
  retry: () => void;
}

/** Loads again when `load` is another function. */
export function useLazy<T>(load: () => Promise<T>): Lazy<T> {
  const [state, setState] = useState<{ load: unknown; part: T | null; error: unknown }>({
    load: null,
    part: null,
    error: null,
  });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let isGone = false;
    load().then(
      (part) => !isGone && setState({ load, part, error: null }),
      (error: unknown) => !isGone && setState({ load, part: null, error }),
    );
    return () => {
      isGone = true;
    };
  }, [load, attempt]);
  const { part, error } = state.load === load ? state : { part: null, error: null };
  return { part, error, retry: () => setAttempt(attempt + 1) };
}
