/**
 * Turns the timeline's state into frames: the drawing loop, the window that a frame draws, marks above the
 * boxes.
 */

import type { Signal } from '@preact/signals';
import { rulerBottomPx, type Marks, type Outline, type Stretch } from '../../../canvas/overlay';
import type { Frame } from '../../../canvas/renderer';
import { Stage } from '../../../canvas/stage';
import type { Camera } from './camera';
import type { FlowNeighbour } from '../data/details_model';
import { arrowAt, type FlowArrow } from './arrows';
import { rowTop, type Layout } from './layout';
import { labelOf, stretchOf, type Marked } from './marked';
import type { TraceWindow } from '../data/model';
import type { Picked } from './picking';
import type { WindowHits } from '../data/query_model';
import { arrowsOf, sceneOf, type Scene } from './scene';
import { readTheme } from './theme';

/** The input of a frame, at its moment. */
export interface Subject {
  readonly camera: Camera;
  readonly layout: Signal<Layout>;
  readonly selected: Signal<Picked | null>;
  readonly several: { readonly events: Signal<readonly Picked[]> };
  readonly marked: Signal<Marked | null>;
  readonly hovered: Signal<{ readonly picked: Picked | null } | null>;
  readonly hasAllFlows: Signal<boolean>;
  readonly nFlows: Signal<number>;
  readonly pinScrollPx: Signal<number>;
  readonly hasSteps: boolean;
  /** Kinds of arrows that are not drawn. */
  readonly hiddenKinds: Signal<ReadonlySet<string>>;
  readonly search: { hitsOf(window: TraceWindow): WindowHits | null };
  /** Arrows of the selected event. */
  readonly flows: readonly FlowNeighbour[];
  /** The best window available; null: none yet. */
  best(): TraceWindow | null;
}

const NO_SCENE: Scene = {
  places: { y: new Float32Array(0), height: new Uint8Array(0) },
  isDim: null,
  areas: [],
  hits: [],
  stepRow: [],
  stretches: new Float64Array(0),
  stepsPs: new Float64Array(0),
};

export class Frames {
  readonly frame: Frame = {
    widthPx: 1,
    heightPx: 1,
    pixelRatio: 1,
    startPs: 0,
    endPs: 1,
    scrollPx: 0,
    pinScrollPx: 0,
  };
  window: TraceWindow | null = null;
  scene: Scene = NO_SCENE;
  /** The interval of a drag in progress, until it ends. */
  draft: Stretch | null = null;
  private readonly stage: Stage;
  private arrows: readonly FlowArrow[] = [];
  private isStale = true;
  private areArrowsStale = true;
  private frameId = 0;
  private lastFrameAt = 0;
  private readonly listeners = new Set<() => void>();
  private isDisposed = false;

  constructor(
    private readonly subject: Subject,
    private readonly scroller: HTMLElement,
    host: HTMLElement,
    renderer?: 'webgl' | 'canvas2d',
  ) {
    this.stage = new Stage(
      host,
      () => {
        this.request();
      },
      renderer,
    );
  }

  get renderer(): string {
    return this.stage.kind;
  }

  get devicePx(): number {
    return Math.round(this.frame.widthPx * this.frame.pixelRatio);
  }

  /** Tracks, search or theme changed: the picture is rebuilt with the next frame. */
  refresh(): void {
    this.isStale = true;
    this.request();
  }

  refreshArrows(): void {
    this.areArrowsStale = true;
    this.request();
  }

  retheme(): void {
    this.stage.setTheme(readTheme());
    this.refresh();
  }

  resize(widthPx: number, heightPx: number): void {
    Object.assign(this.frame, {
      widthPx: Math.max(widthPx, 1),
      heightPx: Math.max(heightPx, 1),
      pixelRatio: window.devicePixelRatio || 1,
    });
  }

  request(): void {
    if (this.frameId === 0 && !this.isDisposed)
      this.frameId = requestAnimationFrame((now) => {
        this.step(now);
      });
  }

  /** Calls back with each frame that is drawn; returns a function that stops it. */
  onFrame(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  private step(now: number): void {
    this.frameId = 0;
    const seconds = Math.min((now - this.lastFrameAt) / 1000, 0.05);
    this.lastFrameAt = now;
    this.subject.camera.advance(now, seconds);
    this.drawNow();
    if (this.subject.camera.isHeld) this.request();
  }

  drawNow(): void {
    if (this.isDisposed) return;
    const best = this.subject.best();
    if (!best) return;
    if (best !== this.window || this.isStale) this.show(best);
    const { startPs, endPs } = this.subject.camera.view;
    Object.assign(this.frame, {
      startPs,
      endPs,
      scrollPx: this.scroller.scrollTop,
      pinScrollPx: this.subject.pinScrollPx.value,
    });
    this.stage.draw(this.frame, this.marks());
    for (const listener of this.listeners) listener();
  }

  private show(next: TraceWindow): void {
    const { subject } = this;
    this.window = next;
    this.isStale = false;
    this.areArrowsStale = true;
    subject.nFlows.value = subject.hasAllFlows.value ? next.nFlows : 0;
    this.scene = sceneOf(next, subject.layout.value, subject.search.hitsOf(next));
    this.stage.setPicture({
      boxes: next.boxes,
      places: this.scene.places,
      isDim: this.scene.isDim,
      window: next,
    });
  }

  private marks(): Marks {
    const { subject, window } = this;
    const layout = subject.layout.value;
    const selected = subject.selected.value;
    const hovered = subject.hovered.value?.picked;
    const marked = subject.marked.value;
    if (this.areArrowsStale && window) {
      this.arrows = arrowsOf(
        subject.hasAllFlows.value ? window : { ...window, flows: null },
        layout,
        selected,
        subject.flows,
      ).filter(({ kind }) => !subject.hiddenKinds.value.has(kind));
      this.areArrowsStale = false;
    }
    return {
      selected: selected ? this.outlineOf(selected) : null,
      several: subject.several.events.value.flatMap((each) => this.outlineOf(each) ?? []),
      hovered: hovered ? this.outlineOf(hovered) : null,
      separators: layout.separators,
      stepsPs: this.scene.stepsPs,
      stepRow: subject.hasSteps ? this.scene.stepRow : null,
      hasMarks: layout.topPx > rulerBottomPx(subject.hasSteps),
      stretch: this.draft ?? (marked ? { ...stretchOf(marked, layout), label: labelOf(marked) } : null),
      arrows: this.arrows,
      hits: this.scene.hits,
      hitStretches: this.scene.stretches,
      areas: this.scene.areas,
      pinnedBottomPx: layout.pinned.length > 0 ? layout.pinnedBottomPx : 0,
    };
  }

  /** The arrow under a point of the stage. */
  arrowAt(x: number, y: number): FlowArrow | null {
    return arrowAt(this.arrows, this.frame, x, y);
  }

  outlineOf(picked: Picked): Outline | null {
    const place = this.subject.layout.value.placeOfTrack.get(picked.track);
    if (!place || picked.depth >= place.nRows) return null;
    return {
      startPs: picked.startPs,
      durationPs: picked.durationPs,
      y: rowTop(place, picked.depth),
      height: place.boxHeight,
    };
  }

  /** The current picture, drawn onto another canvas at (x, y). */
  copyTo(context: CanvasRenderingContext2D, x: number, y: number): Frame {
    this.stage.copyTo(context, this.frame, this.marks(), x, y);
    return this.frame;
  }

  dispose(): void {
    this.isDisposed = true;
    cancelAnimationFrame(this.frameId);
    this.stage.dispose();
  }
}
