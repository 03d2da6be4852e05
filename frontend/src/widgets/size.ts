/** The size of an element, updated as it changes. */
import { useLayoutEffect, useState } from 'preact/hooks';

/** Its width in whole pixels; 0 until it is known. */
export function useWidth(box: { current: Element | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = (): void => setWidth(Math.round(element.getBoundingClientRect().width));
    const watch = new ResizeObserver(read);
    watch.observe(element);
    read();
    return () => watch.disconnect();
  }, []);
  return width;
}
