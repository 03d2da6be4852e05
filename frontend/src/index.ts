/**
 * The entry: TensorBoard imports this module into its iframe and calls render(). In our own index.html it
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
 * A variable, not a literal argument: the bundler would take the style sheet's URL for an asset to rename.
 */
const here = import.meta.url;

/** The name under which TensorBoard knows us: the folder of this module, /data/plugin/<name>/index.js. */
function pluginName(): string {
  return new URL(here).pathname.split('/').at(-2) || 'profile';
}

function loadStyles(): Promise<void> {
  return new Promise((resolve) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = new URL('style.css', here).href;
    link.addEventListener('load', () => resolve());
    // Without styles the page is plain but tells its numbers.
    link.addEventListener('error', () => resolve());
    document.head.append(link);
  });
}

export async function render(): Promise<void> {
  setApiBase(new URL(here));
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

// No inline script may do it: the content security policy forbids them.
if (document.documentElement.hasAttribute('data-standalone')) void render();
