/** Work deferred until the page is idle, or until nothing has happened for a while. */
const LATER_MS = 200;

/** Runs tasks one after the other while the page is idle; returns a function that stops it. */
export function whenIdle(tasks: readonly (() => void)[]): () => void {
  let [at, handle] = [0, 0];
  // Not every browser reports when it is idle.
  const hasIdle = 'requestIdleCallback' in window;
  const wait = (): void => {
    if (at < tasks.length)
      handle = hasIdle ? window.requestIdleCallback(next) : window.setTimeout(next, LATER_MS);
  };
  const next = (): void => {
    tasks[at++]?.();
    wait();
  };
  wait();
  return () => (hasIdle ? window.cancelIdleCallback(handle) : window.clearTimeout(handle));
}

/**
 * Calls back once nothing has happened for a while. Reporting activity costs next to nothing: it may happen
 * every frame.
 */
export class Rest {
  private timer = 0;
  private lastAt = 0;

  constructor(
    private readonly restMs: number,
    private readonly onRest: () => void,
  ) {}

  note(): void {
    this.lastAt = performance.now();
    if (this.timer === 0) this.wait(this.restMs);
  }

  private wait(ms: number): void {
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      const leftMs = this.restMs - (performance.now() - this.lastAt);
      if (leftMs > 1) this.wait(leftMs);
      else this.onRest();
    }, ms);
  }

  cancel(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
  }
}
