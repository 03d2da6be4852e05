/**
 * Shared by every drawn graph: its layout from a separate chunk, a view stored in the link, buttons that zoom
 * and save.
 */
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import './graph_frame.css';
import { parseViewText, viewText, type View } from './graph_viewport';

const SETTLE_MS = 300;

/**
 * The graph that was placed last and its layout; null until the first is. A page that must not show an older
 * graph compares them.
 */
export function usePlaced<G, P>(
  graph: G,
  load: () => Promise<{ layoutOf: (graph: G) => P }>,
): { graph: G; placed: P } | null {
  const [state, setState] = useState<{ graph: G; placed: P } | null>(null);
  useEffect(() => {
    let isGone = false;
    void load().then(({ layoutOf }) => {
      if (!isGone) setState({ graph, placed: layoutOf(graph) });
    });
    return () => {
      isGone = true;
    };
  }, [graph]);
  return state;
}

/** The view: the link's, else the default; written back to the link when it has come to rest. */
export function useLinkedView(
  initial: () => View,
  linked: string | undefined,
  onView: (view: string | undefined) => void,
): [View, (view: View | null) => void] {
  const [own, setOwn] = useState<View | null>(() => parseViewText(linked));
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const change = (next: View | null): void => {
    setOwn(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onView(next ? viewText(next) : undefined), SETTLE_MS);
  };
  return [own ?? initial(), change];
}

export function GraphButtons({
  zoom,
  fit,
  save,
}: {
  zoom: (factor: number) => void;
  fit: () => void;
  save: () => void;
}): VNode {
  const button = (label: string, tip: string, sign: string, press: () => void): VNode => (
    <button type="button" class="button small" aria-label={label} data-tip={tip} onClick={press}>
      {sign}
    </button>
  );
  return (
    <div class="graph-buttons">
      {button('Zoom in', 'Zoom in  +', '+', () => zoom(1.25))}
      {button('Zoom out', 'Zoom out  −', '−', () => zoom(0.8))}
      {button('Fit all of the graph', 'All of the graph  0', 'Fit', fit)}
      {button('Save the graph as an image, PNG', 'All of the graph as an image', 'PNG', save)}
    </div>
  );
}
