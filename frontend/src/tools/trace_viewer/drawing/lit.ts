/** Which boxes of a window a search has lit: exactly, or until its own hits arrive by those of another window. */

import type { TraceWindow } from '../data/model';
import type { WindowHits } from '../data/query_model';

interface Spans {
  readonly startPs: number[];
  readonly endPs: number[];
}

function keyOf(track: number | undefined, depth: number | undefined): string {
  return `${String(track)},${String(depth)}`;
}

/** The lit boxes of each row, in order of time. */
function litRows({ window, isLit }: WindowHits): Map<string, Spans> {
  const rows = new Map<string, Spans>();
  const { boxes, rowTrack, rowDepth } = window;
  for (let row = 0; row < rowTrack.length; row++) {
    const spans: Spans = { startPs: [], endPs: [] };
    for (let i = boxes.rowFirst[row] as number; i < (boxes.rowFirst[row + 1] as number); i++)
      if (isLit[i]) {
        const startPs = boxes.startPs[i] as number;
        spans.startPs.push(startPs);
        spans.endPs.push(startPs + Math.max(boxes.durationPs[i] as number, 1));
      }
    if (spans.startPs.length > 0) rows.set(keyOf(rowTrack[row], rowDepth[row]), spans);
  }
  return rows;
}

/** 1 for each box of `window` that has matches; from another window's hits, that overlaps a lit box of its row. */
export function litBoxes(window: TraceWindow, hits: WindowHits): Uint8Array {
  if (hits.window === window) return hits.isLit;
  const rows = litRows(hits);
  const { boxes, rowTrack, rowDepth } = window;
  const isLit = new Uint8Array(boxes.n);
  for (let row = 0; row < rowTrack.length; row++) {
    const spans = rows.get(keyOf(rowTrack[row], rowDepth[row]));
    if (!spans) continue;
    let at = 0;
    for (let i = boxes.rowFirst[row] as number; i < (boxes.rowFirst[row + 1] as number); i++) {
      const startPs = boxes.startPs[i] as number;
      while (at < spans.endPs.length && (spans.endPs[at] as number) <= startPs) at++;
      if (at === spans.endPs.length) break;
      if ((spans.startPs[at] as number) < startPs + Math.max(boxes.durationPs[i] as number, 1)) isLit[i] = 1;
    }
  }
  return isLit;
}
