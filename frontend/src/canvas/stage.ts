/**
 * Three canvases on top of each other: the ground (grid lines, separators), the boxes (WebGL2), the ink
 * (labels, outlines, ruler). Takes buffers and styles, draws pictures. Without WebGL2 everything is drawn on
 * one canvas: without a GPU each further canvas costs a copy of the screen per frame. If WebGL2 loses its
 * context, a 2D canvas takes over the boxes.
 */

import { drawAreas } from './areas';
import { encodeInstances, type Boxes, type RowPlaces } from './boxes';
import { canvas2dRenderer } from './canvas2d';
import { drawLabels, type LabelLook } from './labels';
import {
  drawArrows,
  drawGrid,
  drawHits,
  drawHitStretches,
  drawOutline,
  drawRuler,
  drawSteps,
  drawStretch,
  drawStretchLabel,
  headerPx,
  rulerBottomPx,
  type Marks,
  type StageTheme,
} from './overlay';
import { inkCss, makePalette, type Palette } from './palette';
import { bandsOf, cssOf, fitCanvas, mix, type BoxRenderer, type Frame, type Rgb } from './renderer';
import { drawStepRow } from './step_row';
import { TextFitter } from './text';
import { rulerOf } from './ticks';
import { isSoftwareWebgl, webglRenderer } from './webgl';

/** What a batch is drawn from; `window` is the time range it was requested for. */
export interface Picture {
  readonly boxes: Boxes;
  readonly places: RowPlaces;
  /** 1: the box does not match the search; null: there is no search. */
  readonly isDim: Uint8Array | null;
  readonly window: { readonly startPs: number; readonly endPs: number };
}

const NO_COLOR: Rgb = [0.5, 0.5, 0.5];
const BLANK: StageTheme = {
  families: [NO_COLOR],
  background: [1, 1, 1],
  surface: [1, 1, 1],
  line: NO_COLOR,
  text: [0, 0, 0],
  muted: NO_COLOR,
  accent: NO_COLOR,
  hit: NO_COLOR,
  flow: NO_COLOR,
  area: NO_COLOR,
  font: 'sans-serif',
};

function layer(host: HTMLElement): HTMLCanvasElement {
  const canvas = host.ownerDocument.createElement('canvas');
  canvas.style.cssText = 'position:absolute;inset:0;width:100%;height:100%;pointer-events:none';
  canvas.setAttribute('aria-hidden', 'true');
  return canvas;
}

export class Stage {
  /** null: everything is on `ink`. */
  private readonly ground: HTMLCanvasElement | null;
  private readonly ink: HTMLCanvasElement;
  private renderer: BoxRenderer | null;
  private theme: StageTheme = BLANK;
  private palette: Palette = makePalette(BLANK.families, BLANK.background);
  private fitter: TextFitter | null = null;
  private picture: Picture | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly onRepaint: () => void,
    /** Absent: WebGL if the machine has hardware for it. */
    wish?: BoxRenderer['kind'],
  ) {
    this.ink = layer(host);
    host.append(this.ink);
    const isWebglWanted = wish ? wish === 'webgl' : !isSoftwareWebgl();
    const webgl = isWebglWanted ? this.startWebgl() : null;
    this.ground = webgl ? layer(host) : null;
    if (this.ground) host.prepend(this.ground);
    this.renderer = webgl ?? canvas2dRenderer(this.ink);
  }

  get kind(): BoxRenderer['kind'] | 'none' {
    return this.renderer?.kind ?? 'none';
  }

  private startWebgl(): BoxRenderer | null {
    const canvas = layer(this.host);
    const renderer = webglRenderer(canvas);
    if (!renderer) return null;
    canvas.addEventListener('webglcontextlost', (event) => {
      event.preventDefault();
      canvas.remove();
      this.renderer = this.start2d();
      this.recolor();
      if (this.picture) this.setPicture(this.picture);
      this.onRepaint();
    });
    this.ink.before(canvas);
    return renderer;
  }

  private start2d(): BoxRenderer | null {
    const canvas = layer(this.host);
    this.ink.before(canvas);
    return canvas2dRenderer(canvas);
  }

  setTheme(theme: StageTheme): void {
    this.theme = theme;
    this.palette = makePalette(theme.families, theme.background);
    const context = this.ink.getContext('2d');
    this.fitter = context
      ? new TextFitter((text) => {
          context.font = theme.font;
          return context.measureText(text).width;
        })
      : null;
    this.recolor();
  }

  private recolor(): void {
    this.renderer?.setColors({ fills: this.palette.fills, background: this.theme.background });
  }

  /** The fills by style number, for a legend. */
  get fills(): readonly Rgb[] {
    return this.palette.fills;
  }

  setPicture(picture: Picture): void {
    this.picture = picture;
    this.renderer?.setBatch(encodeInstances(picture.boxes, picture.places, picture.isDim, picture.window));
  }

  draw(frame: Frame, marks: Marks): void {
    const { theme } = this;
    const ruler = rulerOf(frame, frame.widthPx);
    const bands = bandsOf(frame, marks.pinnedBottomPx);
    const ink = this.open(this.ink, frame);
    const ground = this.ground ? this.open(this.ground, frame) : ink;
    if (!ink || !ground) return;
    this.renderer?.draw(frame, bands);
    // On one canvas the boxes come first, because they overwrite everything; the grid is drawn under them.
    if (!this.ground) ground.globalCompositeOperation = 'destination-over';
    drawGrid(ground, frame, marks, ruler, theme);
    ground.globalCompositeOperation = 'source-over';
    this.drawBands(ink, frame, marks);
    const hasSteps = marks.stepRow !== null;
    const [bottomPx, topPx] = [rulerBottomPx(hasSteps), headerPx(hasSteps, marks.hasMarks)];
    drawSteps(ink, frame, marks.stepsPs, topPx, theme);
    if (marks.stretch) drawStretch(ink, frame, marks.stretch, topPx, theme);
    drawArrows(ink, frame, marks.arrows, theme);
    for (const [outline, widthPx] of [
      ...marks.several.map((outline) => [outline, 2] as const),
      [marks.hovered, 1],
      [marks.selected, 2],
    ] as const) {
      if (!outline) continue;
      ink.save();
      this.clip(
        ink,
        frame,
        outline.y < 0 ? 0 : marks.pinnedBottomPx,
        outline.y < 0 ? marks.pinnedBottomPx : frame.heightPx,
      );
      drawOutline(ink, frame, outline, widthPx, theme);
      ink.restore();
    }
    if (marks.pinnedBottomPx > topPx) {
      ink.fillStyle = cssOf(theme.muted);
      ink.fillRect(0, marks.pinnedBottomPx - 1, frame.widthPx, 1);
    }
    drawRuler(ink, frame, ruler, { bottomPx, topPx }, theme);
    drawHitStretches(ink, frame, marks.hitStretches, bottomPx, theme);
    if (marks.stepRow && this.fitter) drawStepRow(ink, frame, marks.stepRow, this.fitter, theme);
    if (marks.stretch) drawStretchLabel(ink, frame, marks.stretch, bottomPx, theme);
  }

  private clip(context: CanvasRenderingContext2D, frame: Frame, topPx: number, bottomPx: number): void {
    context.beginPath();
    context.rect(0, topPx, frame.widthPx, bottomPx - topPx);
    context.clip();
  }

  private drawBands(context: CanvasRenderingContext2D, frame: Frame, marks: Marks): void {
    const look = this.labelLook();
    for (const band of bandsOf(frame, marks.pinnedBottomPx)) {
      context.save();
      this.clip(context, frame, band.topPx, band.bottomPx);
      drawAreas(context, marks.areas, frame, band, cssOf(mix(this.theme.area, this.theme.background, 0.55)));
      if (this.picture && look)
        drawLabels(context, this.picture.boxes, this.picture.places, frame, band, look);
      drawHits(context, frame, marks.hits, band, this.theme);
      context.restore();
    }
  }

  private open(canvas: HTMLCanvasElement, frame: Frame): CanvasRenderingContext2D | null {
    const context = canvas.getContext('2d');
    if (!context) return null;
    fitCanvas(canvas, frame);
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (this.ground) context.clearRect(0, 0, canvas.width, canvas.height);
    context.setTransform(frame.pixelRatio, 0, 0, frame.pixelRatio, 0, 0);
    return context;
  }

  private labelLook(): LabelLook | null {
    if (!this.fitter) return null;
    return {
      fitter: this.fitter,
      font: this.theme.font,
      inks: [inkCss(0), inkCss(1)],
      mutedInk: cssOf(this.theme.muted),
      isDim: this.picture?.isDim ?? null,
      isLightInk: this.palette.isLightInk,
      isLightInkOnMerged: this.palette.isLightInkOnMerged,
    };
  }

  /**
   * Draws the picture onto another canvas, by drawing it again: WebGL discards its frame once it is shown.
   */
  copyTo(context: CanvasRenderingContext2D, frame: Frame, marks: Marks, x: number, y: number): void {
    this.draw(frame, marks);
    for (const canvas of this.host.querySelectorAll('canvas'))
      context.drawImage(canvas, x, y, frame.widthPx, frame.heightPx);
  }

  dispose(): void {
    this.renderer?.dispose();
    this.host.replaceChildren();
  }
}
