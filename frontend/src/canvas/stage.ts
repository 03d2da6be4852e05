/**
 * Three canvases on top of each other: the ground (grid lines, separators), the boxes (WebGL2 or 2D), the ink (labels,
 * outlines, ruler). Takes buffers and looks, gives pictures; where WebGL2 is missing or its context goes, a 2D canvas takes
 * the boxes' place.
 */

import { luminance } from '../base/color';
import { encodeInstances, type Boxes, type RowPlaces } from './boxes';
import { canvas2dRenderer } from './canvas2d';
import { drawLabels } from './labels';
import { inkCss, makePalette, type Palette } from './palette';
import { cssOf, fitCanvas, mix, type BoxRenderer, type Frame, type Rgb } from './renderer';
import { TextFitter } from './text';
import { rulerOf, tickLabel, type Ruler } from './ticks';
import { isSoftwareWebgl, webglRenderer } from './webgl';

export interface StageTheme {
  readonly families: readonly Rgb[];
  readonly background: Rgb;
  readonly surface: Rgb;
  readonly line: Rgb;
  readonly text: Rgb;
  readonly muted: Rgb;
  readonly accent: Rgb;
  readonly font: string;
}

/** What a batch is drawn from; `window` is the stretch of time it was asked for. */
export interface Picture {
  readonly boxes: Boxes;
  readonly places: RowPlaces;
  readonly styleOfName: Uint8Array;
  readonly window: { readonly startPs: number; readonly endPs: number };
}

export interface Outline {
  readonly startPs: number;
  readonly durationPs: number;
  readonly y: number;
  readonly height: number;
}

export interface Marks {
  readonly selected: Outline | null;
  readonly hovered: Outline | null;
  /** Bottoms of tracks, in the scrolled content. */
  readonly separators: Float32Array;
}

export const RULER_PX = 26;

const NO_COLOR: Rgb = [0.5, 0.5, 0.5];
const BLANK: StageTheme = {
  families: [NO_COLOR], background: [1, 1, 1], surface: [1, 1, 1], line: NO_COLOR, text: [0, 0, 0], muted: NO_COLOR, accent: NO_COLOR, font: 'sans-serif',
};

function layer(host: HTMLElement): HTMLCanvasElement {
  const canvas = host.ownerDocument.createElement('canvas');
  canvas.style.cssText = 'position:absolute;inset:0;width:100%;height:100%;pointer-events:none';
  canvas.setAttribute('aria-hidden', 'true');
  return canvas;
}

export class Stage {
  private readonly ground: HTMLCanvasElement;
  private readonly ink: HTMLCanvasElement;
  private renderer: BoxRenderer | null;
  private theme: StageTheme = BLANK;
  private palette: Palette = makePalette(BLANK.families);
  private fitter: TextFitter | null = null;
  private picture: Picture | null = null;

  constructor(
    private readonly host: HTMLElement,
    private readonly onRepaint: () => void,
    /** Absent: WebGL where the machine has hardware for it. */
    wish?: BoxRenderer['kind'],
  ) {
    this.ground = layer(host);
    this.ink = layer(host);
    host.append(this.ground, this.ink);
    const isWebglWanted = wish ? wish === 'webgl' : !isSoftwareWebgl();
    this.renderer = (isWebglWanted ? this.startWebgl() : null) ?? this.start2d();
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
    this.palette = makePalette(theme.families, luminance(theme.background) < 0.2);
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

  setPicture(picture: Picture): void {
    this.picture = picture;
    this.renderer?.setBatch(encodeInstances(picture.boxes, picture.places, picture.styleOfName, picture.window));
  }

  draw(frame: Frame, marks: Marks): void {
    const ruler = rulerOf(frame, frame.widthPx);
    this.drawGround(frame, marks, ruler);
    this.renderer?.draw(frame);
    const context = this.open(this.ink, frame);
    if (!context) return;
    if (this.picture && this.fitter) this.drawText(context, frame, this.picture, this.fitter);
    if (marks.hovered) this.outline(context, frame, marks.hovered, 1);
    if (marks.selected) this.outline(context, frame, marks.selected, 2);
    this.drawRuler(context, frame, ruler);
  }

  private open(canvas: HTMLCanvasElement, frame: Frame): CanvasRenderingContext2D | null {
    const context = canvas.getContext('2d');
    if (!context) return null;
    fitCanvas(canvas, frame);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.setTransform(frame.pixelRatio, 0, 0, frame.pixelRatio, 0, 0);
    return context;
  }

  private drawText(context: CanvasRenderingContext2D, frame: Frame, picture: Picture, fitter: TextFitter): void {
    drawLabels(context, picture.boxes, picture.places, frame, {
      fitter,
      font: this.theme.font,
      inks: [inkCss(0), inkCss(1)],
      mergedInk: cssOf(this.theme.text),
      styleOfName: picture.styleOfName,
      isLightInk: this.palette.isLightInk,
    });
  }

  private drawGround(frame: Frame, marks: Marks, ruler: Ruler): void {
    const context = this.open(this.ground, frame);
    if (!context) return;
    const hairline = 1 / frame.pixelRatio;
    const perPs = frame.widthPx / (frame.endPs - frame.startPs);
    context.fillStyle = cssOf(mix(this.theme.line, this.theme.background, 0.75));
    for (let i = 0; i < ruler.nTicks; i++) {
      const x = (ruler.firstPs + i * ruler.stepPs - frame.startPs) * perPs;
      context.fillRect(Math.round(x * frame.pixelRatio) / frame.pixelRatio, 0, hairline, frame.heightPx);
    }
    context.fillStyle = cssOf(this.theme.line);
    for (const bottom of marks.separators) {
      const y = bottom - frame.scrollPx;
      if (y >= 0 && y <= frame.heightPx) context.fillRect(0, Math.round(y) - hairline, frame.widthPx, hairline);
    }
  }

  private outline(context: CanvasRenderingContext2D, frame: Frame, outline: Outline, widthPx: number): void {
    const perPs = frame.widthPx / (frame.endPs - frame.startPs);
    const left = Math.max((outline.startPs - frame.startPs) * perPs, -8);
    const right = Math.min(Math.max((outline.startPs + outline.durationPs - frame.startPs) * perPs, left + 2), frame.widthPx + 8);
    if (right < -8 || left > frame.widthPx + 8) return;
    const y = outline.y - frame.scrollPx;
    const half = widthPx / 2;
    context.strokeStyle = cssOf(this.theme.background);
    context.lineWidth = widthPx + 2;
    context.strokeRect(left - half, y - half, right - left + widthPx - 1, outline.height + widthPx);
    context.strokeStyle = cssOf(this.theme.text);
    context.lineWidth = widthPx;
    context.strokeRect(left - half, y - half, right - left + widthPx - 1, outline.height + widthPx);
  }

  private drawRuler(context: CanvasRenderingContext2D, frame: Frame, ruler: Ruler): void {
    const perPs = frame.widthPx / (frame.endPs - frame.startPs);
    context.fillStyle = cssOf(this.theme.background);
    context.fillRect(0, 0, frame.widthPx, RULER_PX);
    context.fillStyle = cssOf(this.theme.line);
    context.fillRect(0, RULER_PX - 1, frame.widthPx, 1);
    context.font = this.theme.font;
    context.textBaseline = 'middle';
    for (let i = 0; i < ruler.nTicks; i++) {
      const x = Math.round((ruler.firstPs + i * ruler.stepPs - frame.startPs) * perPs);
      context.fillStyle = cssOf(this.theme.line);
      context.fillRect(x, RULER_PX - 9, 1, 9);
      context.fillStyle = cssOf(this.theme.muted);
      const label = tickLabel(ruler, i);
      if (x + 4 + (this.fitter?.width(label) ?? 0) < frame.widthPx) context.fillText(label, x + 4, RULER_PX / 2);
    }
  }

  dispose(): void {
    this.renderer?.dispose();
    this.host.replaceChildren();
  }
}
