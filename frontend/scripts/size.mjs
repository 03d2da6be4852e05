/** Measures the JavaScript that is loaded before the first page shows its numbers: the entry, the overview and what both import. */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const STATIC = new URL('../../tb_tpuprof/serve/static/', import.meta.url);
const LIMIT_BYTES = 150 * 1000;
const FIRST_PAINT = ['src/index.ts', 'src/tools/overview_page/index.tsx'];

const manifest = JSON.parse(readFileSync(new URL('manifest.json', STATIC), 'utf8'));
const gzipBytes = (file) => gzipSync(readFileSync(new URL(file, STATIC)), { level: 9 }).length;

function filesOf(key, seen = new Set()) {
  const chunk = manifest[key];
  if (!chunk || seen.has(chunk.file)) return seen;
  seen.add(chunk.file);
  for (const next of chunk.imports ?? []) filesOf(next, seen);
  return seen;
}

const first = new Set();
for (const key of FIRST_PAINT) {
  if (!manifest[key]) throw new Error(`${key} is not in the manifest: build first`);
  filesOf(key, first);
}
const scripts = [...new Set(Object.values(manifest).map((chunk) => chunk.file))]
  .filter((file) => file.endsWith('.js'))
  .sort();
let total = 0;
for (const file of scripts) {
  const bytes = gzipBytes(file);
  if (first.has(file)) total += bytes;
  console.log(`${first.has(file) ? 'first' : 'lazy '} ${(bytes / 1000).toFixed(1).padStart(7)} kB  ${file}`);
}
console.log(
  `first paint: ${(total / 1000).toFixed(1)} kB gzip of at most ${LIMIT_BYTES / 1000} kB; style sheet ${(gzipBytes('style.css') / 1000).toFixed(1)} kB`,
);
if (total > LIMIT_BYTES) {
  console.error('too much JavaScript before the first paint');
  process.exit(1);
}
