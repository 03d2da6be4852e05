/**
 * The graph as a tree of scopes: each with a bar of valid (green), incompatible (red) and unchecked (gray)
 * operations.
 */
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { format } from '../../base/units';
import { openRows, toggled, validFraction, visible, type Scope } from './model';

const ROWS_AT_ONCE = 300;

function Bar({ scope }: { scope: Scope }): VNode {
  const parts = [
    { name: 'valid', n: scope.nValid, token: '--good' },
    { name: 'incompatible', n: scope.nInvalid, token: '--bad' },
    { name: 'not checked', n: scope.nNotChecked, token: '--line-strong' },
  ].filter((part) => part.n > 0);
  const tip = parts.map((part) => `${part.n.toLocaleString('en')} ${part.name}`).join(' · ');
  return (
    <span class="tc-bar" role="img" aria-label={tip} data-tip={tip}>
      {parts.map((part) => (
        <i key={part.name} style={{ flex: `${part.n} 1 0`, background: `var(${part.token})` }} />
      ))}
    </span>
  );
}

interface RowProps {
  scope: Scope;
  isOpen: boolean;
  isChosen: boolean;
  onToggle: () => void;
  onChoose: () => void;
}

function Row({ scope, isOpen, isChosen, onToggle, onChoose }: RowProps): VNode {
  const fraction = validFraction(scope);
  const level = fraction === null ? 'none' : scope.nInvalid ? 'bad' : 'good';
  const has = scope.children.length > 0;
  const onKey = (event: KeyboardEvent): void => {
    if ((event.key === 'ArrowRight' && has && !isOpen) || (event.key === 'ArrowLeft' && has && isOpen)) {
      event.preventDefault();
      onToggle();
    }
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const row = event.currentTarget instanceof Element ? event.currentTarget.closest('.tc-row') : null;
      const next = event.key === 'ArrowDown' ? row?.nextElementSibling : row?.previousElementSibling;
      next?.querySelector<HTMLElement>('.tc-name')?.focus();
    }
  };
  return (
    <div
      class="tc-row"
      role="treeitem"
      aria-level={scope.depth + 1}
      aria-expanded={has ? isOpen : undefined}
      aria-selected={isChosen}
      data-level={level}
    >
      <span class="tc-scope" style={{ paddingLeft: `${Math.min(scope.depth, 24) * 16}px` }}>
        <button
          type="button"
          class="tc-caret"
          tabIndex={-1}
          aria-label={isOpen ? 'Close' : 'Open'}
          disabled={!has}
          onClick={onToggle}
        >
          {has ? (isOpen ? '▾' : '▸') : ''}
        </button>
        <button
          type="button"
          class="tc-name"
          onClick={onChoose}
          onDblClick={has ? onToggle : undefined}
          onKeyDown={onKey}
          data-tip={scope.path || undefined}
        >
          {scope.name}
        </button>
      </span>
      <Bar scope={scope} />
      <span class="tc-share">{fraction === null ? 'not checked' : format(fraction, 'fraction')}</span>
      <span class="tc-count">{scope.nInvalid ? scope.nInvalid.toLocaleString('en') : ''}</span>
      <span class="tc-count muted">
        {(scope.nValid + scope.nInvalid + scope.nNotChecked).toLocaleString('en')}
      </span>
    </div>
  );
}

export interface TreeProps {
  scopes: readonly Scope[];
  chosen: Scope | undefined;
  open: string | undefined;
  isInvalidOnly: boolean;
  onOpen: (open: string | undefined) => void;
  onChoose: (scope: Scope) => void;
}

export function Tree({ scopes, chosen, open, isInvalidOnly, onOpen, onChoose }: TreeProps): VNode {
  const [nRows, setRows] = useState(ROWS_AT_ONCE);
  const opened = useMemo(() => openRows(scopes, open), [scopes, open]);
  const rows = useMemo(() => visible(scopes, opened, isInvalidOnly), [scopes, opened, isInvalidOnly]);
  return (
    <div class="tc-tree" role="tree" aria-label="Scopes">
      <div class="tc-head" aria-hidden="true">
        <span>Scope</span>
        <span />
        <span class="tc-share">Valid</span>
        <span class="tc-count">Incompatible</span>
        <span class="tc-count">Operations</span>
      </div>
      {rows.slice(0, nRows).map((scope) => (
        <Row
          key={scope.row}
          scope={scope}
          isOpen={opened.has(scope.row)}
          isChosen={(chosen?.row ?? 0) === scope.row}
          onToggle={() => onOpen(toggled(open, scope.row))}
          onChoose={() => onChoose(scope)}
        />
      ))}
      {rows.length > nRows && (
        <button type="button" class="button small" onClick={() => setRows(nRows + ROWS_AT_ONCE)}>
          Show {Math.min(ROWS_AT_ONCE, rows.length - nRows)} of {(rows.length - nRows).toLocaleString('en')}{' '}
          more
        </button>
      )}
    </div>
  );
}
