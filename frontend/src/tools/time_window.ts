/** A window of time that a chart shows, and how dragging and buttons change it. Pure. */

/** Room for the axes on both sides of a plot, in pixels. */
export const LEFT_PX = 64;
export const RIGHT_PX = 52;

export interface Window {
  startPs: number;
  endPs: number;
}

/** The requested width: one of a few, so that answers are cached. */
export function widthFor(innerWidth: number): string {
  return String(Math.min(4000, Math.max(800, Math.ceil(innerWidth / 400) * 400)));
}

/**
 * The part of a window between two shares of its width, dragged in either direction; null: too narrow to be
 * intended.
 */
export function dragged(window: Window, from: number, to: number): Window | null {
  const [low, high] = [Math.max(0, Math.min(from, to)), Math.min(1, Math.max(from, to))];
  const length = window.endPs - window.startPs;
  if (high - low < 0.005 || (high - low) * length < 1000) return null;
  return {
    startPs: Math.round(window.startPs + low * length),
    endPs: Math.round(window.startPs + high * length),
  };
}

/** The window scaled about its middle and moved by shares of its length, within the trace. */
export function moved(window: Window, scale: number, shift: number, tracePs: number): Window {
  const length = Math.min(tracePs, Math.max(1000, (window.endPs - window.startPs) * scale));
  const middle = (window.startPs + window.endPs) / 2 + shift * (window.endPs - window.startPs);
  const startPs = Math.round(Math.min(Math.max(0, middle - length / 2), Math.max(0, tracePs - length)));
  return { startPs, endPs: Math.round(startPs + length) };
}

/** The URL parameters of a window; the whole trace takes none. */
export function windowParams(window: Window | null, tracePs: number): Record<string, string | undefined> {
  const isWhole = !window || (window.startPs <= 0 && window.endPs >= tracePs);
  return {
    start_ps: isWhole ? undefined : String(window.startPs),
    end_ps: isWhole ? undefined : String(window.endPs),
  };
}
