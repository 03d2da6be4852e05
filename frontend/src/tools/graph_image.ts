/** Saves the whole graph as a PNG, in the colors of the active theme. */
import { saveUrl } from '../base/clipboard';
import { tokenColor } from '../base/color';
import type { Size } from './graph_viewport';

const PIXELS_PER_UNIT = 2;
const MAX_PIXELS = 12_000;
const STYLES = [
  'fill',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'font-size',
  'font-weight',
  'font-family',
];

/** A copy whose shapes carry their computed styles: an image has no style sheet. */
function styledCopy(content: Element): Element {
  const copy = content.cloneNode(true) as Element;
  const copies = [...copy.querySelectorAll('*')];
  [...content.querySelectorAll('*')].forEach((element, i) => {
    const style = getComputedStyle(element);
    copies[i]?.setAttribute(
      'style',
      STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(';'),
    );
  });
  copy.removeAttribute('transform');
  return copy;
}

function loaded(source: string): Promise<HTMLImageElement> {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.addEventListener('load', () => resolve(image));
    image.addEventListener('error', () => reject(new Error('the graph cannot be drawn as an image')));
    image.src = source;
  });
}

export async function saveImage(frame: Element | null, { width, height }: Size, name: string): Promise<void> {
  const content = frame?.querySelector('.graph-content');
  if (!content) return;
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` }))
    svg.setAttribute(name, String(value));
  svg.append(styledCopy(content));
  const source = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
  const image = await loaded(source);
  const scale = Math.min(PIXELS_PER_UNIT, MAX_PIXELS / Math.max(width, height));
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [Math.ceil(width * scale), Math.ceil(height * scale)];
  const context = canvas.getContext('2d');
  if (!context) return;
  context.fillStyle = tokenColor('--bg');
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  saveUrl(canvas.toDataURL('image/png'), name);
}
