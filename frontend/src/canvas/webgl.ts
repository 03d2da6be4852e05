/**
 * Boxes as instanced quads in WebGL2: one draw call, times become pixels in the vertex shader, so a frame of
 * 50,000 boxes costs the main thread four uniforms. Merged boxes are hatched in the fragment shader.
 */

import { DIAMOND_PX, INSTANCE_BYTES, LEAST_DIAMOND_PX, instancesWithin, type InstanceBatch } from './boxes';
import {
  DIM_FILL,
  fitCanvas,
  GAP_FROM_PX,
  HATCH_FILL,
  HATCH_PX,
  MAX_STYLES,
  MERGED_FILL,
  type BoxColors,
  type Band,
  type BoxRenderer,
  type Frame,
} from './renderer';

const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec3 place;   // start and end from the batch's origin in ps; y in CSS px
layout(location = 1) in vec3 marks;   // style, flags, height in CSS px
uniform vec2 size;                    // of the canvas, device px
uniform vec2 time;                    // window's start from the origin in ps; device px per ps
uniform vec2 offset;                  // scroll in CSS px; device px per CSS px
uniform float pass;                   // 0: boxes; 1: instants, as diamonds over them
uniform vec3 fills[${String(MAX_STYLES)}];
flat out vec3 fill;
flat out float hatched;
flat out float strength;
out vec2 across;                      // of a diamond: -1 to 1 in both directions
flat out vec2 radius;                 // of a diamond, device px; 0: a box
void main() {
  float isInstant = step(4.0, marks.y);
  float flags = mod(marks.y, 4.0);
  float left = clamp(floor((place.x - time.x) * time.y + 0.5), -16.0, size.x + 16.0);
  float right = clamp(floor((place.y - time.x) * time.y + 0.5), -16.0, size.x + 16.0);
  left = left == size.x ? left - 1.0 : left; // A box that begins where the window ends gets the last pixel.
  float full = floor(${DIAMOND_PX.toFixed(1)} * offset.y + 0.5);
  float least = ${LEAST_DIAMOND_PX.toFixed(1)} * offset.y;
  float room = clamp((place.y - place.x) * time.y, least, full); // of an instant
  float reach = room + 1.0;
  float width = right - left;
  right = left + (width >= ${GAP_FROM_PX.toFixed(1)} ? width - 1.0 : max(width, 1.0));
  float top = floor((place.z - offset.x) * offset.y + 0.5);
  float bottom = top + floor(marks.z * offset.y + 0.5);
  vec2 corner = vec2(float(gl_VertexID & 1), float(gl_VertexID >> 1));
  float middle = min(left, size.x - 1.0) + 0.5;
  left = mix(left, middle - reach, isInstant);
  right = mix(right, middle + reach, isInstant);
  across = corner * 2.0 - 1.0;
  float tall = min(reach, 0.5 * (bottom - top));
  float center = mix(bottom - tall, 0.5 * (top + bottom), (room - least) / (full - least));
  top = mix(top, center - tall, isInstant);
  bottom = mix(bottom, center + tall, isInstant);
  radius = isInstant * vec2(reach, tall);
  // Drawn in the other pass: no area here.
  vec2 px = isInstant == pass ? mix(vec2(left, top), vec2(right, bottom), corner) : vec2(0.0);
  gl_Position = vec4(px / size * vec2(2.0, -2.0) + vec2(-1.0, 1.0), 0.0, 1.0);
  fill = fills[int(marks.x)];
  hatched = mod(flags, 2.0);
  strength = flags >= 2.0 ? ${DIM_FILL.toFixed(2)} : 1.0;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
flat in vec3 fill;
flat in float hatched;
flat in float strength;
in vec2 across;
flat in vec2 radius;
uniform vec3 background;
uniform float hatchPx;
out vec4 color;
void main() {
  float line = step(0.5, fract((gl_FragCoord.x + gl_FragCoord.y) / (2.0 * hatchPx)));
  float share = mix(1.0, mix(${MERGED_FILL.toFixed(2)}, ${HATCH_FILL.toFixed(2)}, line), hatched);
  color = vec4(mix(background, fill, share * strength), 1.0);
  if (radius.x > 0.0) {
    float inside = (1.0 - abs(across.y)) * (radius.x - 1.0) - abs(across.x) * radius.x;
    if (inside < -1.0) discard;
    if (inside < 0.0) color = vec4(background, 1.0);
  }
}`;

interface Program {
  readonly program: WebGLProgram;
  readonly uniform: Readonly<
    Record<
      'size' | 'time' | 'offset' | 'pass' | 'fills' | 'background' | 'hatchPx',
      WebGLUniformLocation | null
    >
  >;
}

function compile(gl: WebGL2RenderingContext): Program | null {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(kind);
    if (!shader) return null;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  const uniformAt = (name: string): WebGLUniformLocation | null => gl.getUniformLocation(program, name);
  return {
    program,
    uniform: {
      size: uniformAt('size'),
      time: uniformAt('time'),
      offset: uniformAt('offset'),
      pass: uniformAt('pass'),
      fills: uniformAt('fills'),
      background: uniformAt('background'),
      hatchPx: uniformAt('hatchPx'),
    },
  };
}

class WebglRenderer implements BoxRenderer {
  readonly kind = 'webgl';
  private readonly buffer: WebGLBuffer | null;
  private readonly vertexArray: WebGLVertexArrayObject | null;
  private batch: InstanceBatch | null = null;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
    private readonly linked: Program,
  ) {
    this.buffer = gl.createBuffer();
    this.vertexArray = gl.createVertexArray();
    gl.bindVertexArray(this.vertexArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribDivisor(0, 1);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribDivisor(1, 1);
    gl.useProgram(linked.program);
  }

  /** WebGL2 draw calls take no first instance: the attributes' offset replaces it. */
  private startAt(instance: number): void {
    const { gl } = this;
    const offset = instance * INSTANCE_BYTES;
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, INSTANCE_BYTES, offset);
    gl.vertexAttribPointer(1, 3, gl.UNSIGNED_BYTE, false, INSTANCE_BYTES, offset + 12);
  }

  setColors(colors: BoxColors): void {
    const fills = new Float32Array(MAX_STYLES * 3);
    colors.fills.slice(0, MAX_STYLES).forEach((fill, index) => {
      fills.set(fill, index * 3);
    });
    this.gl.uniform3fv(this.linked.uniform.fills, fills);
    this.gl.uniform3f(this.linked.uniform.background, ...colors.background);
  }

  setBatch(batch: InstanceBatch): void {
    this.batch = batch;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffer);
    this.gl.bufferData(
      this.gl.ARRAY_BUFFER,
      batch.marks.subarray(0, batch.n * INSTANCE_BYTES),
      this.gl.DYNAMIC_DRAW,
    );
  }

  draw(frame: Frame, bands: readonly Band[]): void {
    const { gl, canvas, batch } = this;
    const { uniform } = this.linked;
    fitCanvas(canvas, frame);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!batch) return;
    gl.enable(gl.SCISSOR_TEST);
    gl.uniform2f(uniform.size, canvas.width, canvas.height);
    gl.uniform2f(uniform.time, frame.startPs - batch.originPs, canvas.width / (frame.endPs - frame.startPs));
    gl.uniform1f(uniform.hatchPx, HATCH_PX * frame.pixelRatio * 0.5);
    for (const band of bands) this.drawBand(frame, batch, band);
  }

  private drawBand(frame: Frame, batch: InstanceBatch, { topPx, bottomPx, scrollPx }: Band): void {
    const { gl, canvas } = this;
    const [from, to] = instancesWithin(batch, scrollPx + topPx, scrollPx + bottomPx);
    if (from === to) return;
    const [top, bottom] = [Math.round(topPx * frame.pixelRatio), Math.round(bottomPx * frame.pixelRatio)];
    gl.scissor(0, canvas.height - bottom, canvas.width, Math.max(0, bottom - top));
    this.startAt(from);
    gl.uniform2f(this.linked.uniform.offset, scrollPx, frame.pixelRatio);
    for (const pass of batch.hasInstants ? [0, 1] : [0]) {
      gl.uniform1f(this.linked.uniform.pass, pass);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, to - from);
    }
  }

  dispose(): void {
    this.gl.deleteBuffer(this.buffer);
    this.gl.deleteVertexArray(this.vertexArray);
    this.gl.deleteProgram(this.linked.program);
  }
}

/** Emulated in software a frame takes a hundred times as long as on a plain 2D canvas. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|basic render|software/i;

let isSoftware: boolean | undefined;

/** Checked once: creating a context to find out takes longer than a frame. */
export function isSoftwareWebgl(): boolean {
  isSoftware ??= looksEmulated();
  return isSoftware;
}

function looksEmulated(): boolean {
  const gl = document.createElement('canvas').getContext('webgl2');
  const info = gl?.getExtension('WEBGL_debug_renderer_info');
  const isEmulated = !!gl && !!info && SOFTWARE.test(String(gl.getParameter(info.UNMASKED_RENDERER_WEBGL)));
  gl?.getExtension('WEBGL_lose_context')?.loseContext();
  return isEmulated;
}

/**
 * A renderer on this canvas, or null if the browser has no WebGL2 (the canvas then has no 2D context either:
 * use a new one).
 */
export function webglRenderer(canvas: HTMLCanvasElement): BoxRenderer | null {
  const gl = canvas.getContext('webgl2', {
    alpha: true,
    antialias: false,
    depth: false,
    preserveDrawingBuffer: false,
  });
  if (!gl) return null;
  const linked = compile(gl);
  return linked ? new WebglRenderer(canvas, gl, linked) : null;
}
