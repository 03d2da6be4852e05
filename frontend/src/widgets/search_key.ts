/** The search field of the page that the key `/` focuses. */
import { signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** The target of `/`: the first search field of the page. */
export function searchField(): HTMLInputElement | null {
  return document.querySelector<HTMLInputElement>('main [data-key="search"]');
}

const nFields = signal(0);

/** Whether `/` focuses this search field: of several on a page only one may show the key. */
export function useHasSearchKey(field: RefObject<HTMLInputElement>): boolean {
  const [hasKey, setHasKey] = useState(false);
  useEffect(() => {
    nFields.value += 1;
    return () => {
      nFields.value -= 1;
    };
  }, []);
  useEffect(
    () => nFields.subscribe(() => setHasKey(field.current !== null && searchField() === field.current)),
    [],
  );
  return hasKey;
}
