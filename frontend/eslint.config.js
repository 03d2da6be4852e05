/** Lint rules, and the layers: base <- api, canvas, widgets <- state <- tools <- app. A tool never imports another tool. */
import js from '@eslint/js';
import { readdirSync } from 'node:fs';
import tseslint from 'typescript-eslint';

const MAY_IMPORT = {
  base: [],
  api: ['base'],
  canvas: ['base'],
  widgets: ['base'],
  state: ['base', 'api'],
};
const LAYERS = ['base', 'api', 'canvas', 'widgets', 'state', 'tools'];

function forbid(files, groups, message, extra = {}) {
  return {
    files,
    rules: { 'no-restricted-imports': ['error', { patterns: [{ group: groups, message }] }] },
    ...extra,
  };
}

const layerRules = Object.entries(MAY_IMPORT).map(([layer, allowed]) => {
  const forbidden = LAYERS.filter((other) => other !== layer && !allowed.includes(other));
  const groups = forbidden.flatMap((other) => [
    `../${other}/*`,
    `../${other}`,
    `../../${other}/**`,
    `**/src/${other}/**`,
  ]);
  return forbid(
    [`src/${layer}/**/*.{ts,tsx}`],
    [...groups, '../app', '../app/*', '../index'],
    `${layer} may import only: ${allowed.join(', ') || 'nothing'}`,
  );
});

const toolNames = readdirSync(new URL('./src/tools/', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);
const APP = ['**/../../app', '**/../../app/*', '**/../../index'];
const others = (name) => toolNames.filter((other) => other !== name);
const toolRules = toolNames.map((name) =>
  forbid(
    [`src/tools/${name}/**/*.{ts,tsx}`],
    [...others(name).flatMap((other) => [`../${other}/**`, `../${other}`, `../../${other}/**`]), ...APP],
    'a tool imports neither another tool nor the app',
  ),
);

// The folders of the trace viewer, from bottom to top.
const VIEWER = ['data', 'drawing', 'state', 'input', 'tracks', 'query', 'marks', 'details', 'saving'];
const folders = readdirSync(new URL('./src/tools/trace_viewer/', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);
if (String(folders.sort()) !== String([...VIEWER].sort()))
  throw new Error(`Give each folder of the trace viewer a place in VIEWER: ${String(folders)}`);
const viewerRules = VIEWER.map((folder, place) =>
  forbid(
    [`src/tools/trace_viewer/${folder}/**/*.{ts,tsx}`],
    [
      ...VIEWER.slice(place + 1).map((other) => `../${other}/**`),
      ...['index', 'minimap', 'toolbar'].map((file) => `../${file}`),
      ...others('trace_viewer').map((other) => `../../${other}/**`),
      ...APP,
    ],
    `${folder} imports only what is below it: ${VIEWER.slice(0, place).join(', ') || 'nothing'}`,
    { ignores: ['**/*.test.{ts,tsx}'] },
  ),
);

export default tseslint.config(
  { ignores: ['node_modules/', 'coverage/', 'dev/shots/'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      'max-lines': ['error', { max: 500 }],
      'max-lines-per-function': ['warn', { max: 100, skipBlankLines: true, skipComments: true }],
      'max-params': ['error', { max: 7 }],
      'no-eval': 'error',
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'never make HTML from data' },
        { property: 'outerHTML', message: 'never make HTML from data' },
        { property: 'dangerouslySetInnerHTML', message: 'never make HTML from data' },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: 'never make HTML from data',
        },
      ],
      eqeqeq: 'error',
    },
  },
  { files: ['**/*.test.{ts,tsx}'], rules: { 'max-lines-per-function': 'off' } },
  {
    files: ['**/*.mjs', '**/*.js'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        Buffer: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
  ...layerRules,
  ...toolRules,
  ...viewerRules,
);
