/**
 * The entry point: TensorBoard imports this module into its iframe and calls render(). Our own index.html
 * starts by itself.
 */
import { h, render as mount } from 'preact';
import { setApiBase } from './api/client';
import { App } from './app';
import { followChoice } from './app/ahead';
import './base/tokens.css';
import './base/page.css';
import { followTheme } from './base/theme';
import { loadRuns } from './state/catalog';
import { findRunning } from './state/running';
import { followUrl } from './state/selection';
import { serveTooltips } from './widgets/tooltip';

/**
 * A variable, not a literal argument: the bundler would treat the style sheet's URL as an asset and rename
 * it.
 */
const moduleUrl = import.meta.url;

/**
 * The name under which TensorBoard registered us: the folder of this module, /data/plugin/<name>/index.js.
 */
function pluginName(): string {
  return new URL(moduleUrl).pathname.split('/').at(-2) || 'profile';
}

function loadStyles(): Promise<void> {
  return new Promise((resolve) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = new URL('style.css', moduleUrl).href;
    link.addEventListener('load', () => resolve());
    // Without styles the page is plain but still shows its numbers.
    link.addEventListener('error', () => resolve());
    document.head.append(link);
  });
}

export async function render(): Promise<void> {
  setApiBase(new URL(moduleUrl));
  document.documentElement.lang = 'en';
  followTheme();
  followUrl(pluginName());
  followChoice();
  void loadRuns();
  void findRunning();
  await loadStyles();
  const root = document.createElement('div');
  root.id = 'app';
  document.body.append(root);
  serveTooltips(document.body);
  mount(h(App, {}), root);
}

// Not an inline script: the content security policy forbids those.
if (document.documentElement.hasAttribute('data-standalone')) void render();
