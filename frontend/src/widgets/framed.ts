/**
 * Combines the input between two frames into one change: pointers and keys report more often than a screen is
 * drawn.
 */
import { useEffect, useRef } from 'preact/hooks';

/** A function that passes the last of its values to `apply`, at the beginning of the next frame. */
export function useFramed<T>(apply: (value: T) => void): (value: T) => void {
  const [frame, last, latest] = [useRef(0), useRef<T | null>(null), useRef(apply)];
  latest.current = apply;
  useEffect(
    () => () => {
      cancelAnimationFrame(frame.current);
    },
    [],
  );
  const later = useRef((value: T): void => {
    last.current = value;
    if (frame.current) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      latest.current(last.current as T);
    });
  });
  return later.current;
}
