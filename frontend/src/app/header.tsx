/** The line at the top of a page: the page's title, the run on display, and export, link and help. */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { dataUrl } from '../api/client';
import type { ToolInfo } from '../api/types';
import { copyText, saveUrl } from '../base/clipboard';
import { plural } from '../base/units';
import { shown } from '../state/payload';
import { linkTo } from '../state/selection';
import { Menu, type MenuItem } from '../widgets/menu';

const SAID_MS = 1600;

function exportItems(): MenuItem[] {
  if (!shown.value) return [];
  const { query, payload } = shown.value;
  const file = (part: string): string => `${payload.run}_${part}`.replace(/[^\w.-]+/g, '_');
  const tables = Object.entries(payload.tables).filter(([, table]) => table.n_rows > 0);
  return [
    ...tables.map(([name, table]) => ({
      label: `${table.title || name} as CSV`,
      note: plural(table.n_rows, 'row'),
      act: () =>
        saveUrl(dataUrl(query, { format: 'csv', table: name }), `${file(`${query.tool}_${name}`)}.csv`),
    })),
    {
      label: 'This page as JSON',
      act: () => saveUrl(dataUrl(query, { format: 'json' }), `${file(query.tool)}.json`),
    },
  ];
}

function CopyLink(): VNode {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = window.setTimeout(() => setCopied(false), SAID_MS);
    return () => window.clearTimeout(timer);
  }, [isCopied]);
  const copy = (): void => void copyText(linkTo()).then(() => setCopied(true));
  return (
    <>
      <button
        type="button"
        class="button copy-link"
        aria-label="Copy link"
        data-tip="A link to exactly this view"
        onClick={copy}
      >
        {isCopied ? 'Copied' : 'Copy link'}
      </button>
      <span class="hidden-text" role="status">
        {isCopied ? 'Link copied' : ''}
      </span>
    </>
  );
}

export interface HeaderProps {
  info: Pick<ToolInfo, 'title' | 'summary'>;
  /** False: the page's tables export themselves. */
  hasExport?: boolean;
  onHelp: () => void;
  isHelpOpen?: boolean;
}

export function Header({ info, hasExport = true, onHelp, isHelpOpen = false }: HeaderProps): VNode {
  return (
    <header class="page-header">
      <h1>{info.title}</h1>
      <p>{info.summary}</p>
      {hasExport && <Menu label="Export" title="Export" items={exportItems()} />}
      <CopyLink />
      <button
        type="button"
        class="button"
        aria-label="Help"
        aria-expanded={isHelpOpen}
        data-tip="Help for this page, and keys  ?"
        onClick={onHelp}
      >
        ?
      </button>
    </header>
  );
}
