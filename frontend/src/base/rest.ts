/** Calls back once nothing has happened for a while. Noting that something did costs next to nothing: it may be each frame. */
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
