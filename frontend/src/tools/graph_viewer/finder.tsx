/** Finds instructions of the program by name, opcode or framework op; a click walks there. */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { fetchPayload } from '../../api/client';
import { readTable } from '../../api/declared';
import { GRAPH_VIEWER } from '../../api/tables/graph_viewer';
import { format } from '../../base/units';
import { useLoaded } from '../../state/payload';
import { classToken } from './model';

const WAIT_MS = 180;
const SHOWN = 30;

interface FinderProps {
  run: string;
  hosts: readonly string[];
  program: string;
  onWalk: (name: string) => void;
}

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value.trim()), WAIT_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return settled;
}

export function Finder({ run, hosts, program, onWalk }: FinderProps): VNode {
  const [typed, setTyped] = useState('');
  const [isOpen, setOpen] = useState(false);
  const settled = useSettled(typed);
  const query = {
    tool: 'graph_viewer',
    question: 'search',
    run,
    hosts,
    params: { program, text: settled },
  };
  const { data, error } = useLoaded(settled && `${run}|${program}|${settled}`, `${run}|${program}`, (abort) =>
    fetchPayload(query, 'json', abort),
  );
  const matches = settled && data ? readTable(data, GRAPH_VIEWER.search.tables.matches) : null;
  const rows = matches?.all().slice(0, SHOWN) ?? [];
  const walk = (name: string): void => {
    setOpen(false);
    onWalk(name);
  };
  const first = rows[0]?.name ?? '';
  return (
    <div
      class="gv-finder"
      onFocusOut={(event) =>
        !event.currentTarget.contains(event.relatedTarget as HTMLElement | null) && setOpen(false)
      }
    >
      <input
        type="search"
        class="field"
        data-key="search"
        placeholder="Find an instruction  /"
        aria-label="Find an instruction"
        maxLength={200}
        value={typed}
        onFocus={() => setOpen(true)}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setOpen(true);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && first) walk(first);
          if (event.key === 'Escape') setOpen(false);
        }}
      />
      {isOpen && settled && (
        <div class="popup left" role="listbox" aria-label="Matches">
          {error && <p class="muted">{error.message}</p>}
          {matches && !rows.length && <p class="muted">No instruction matches.</p>}
          {rows.map(({ name, opcode, op_class, time_ps = null }) => (
            <button
              key={name}
              type="button"
              class="item"
              role="option"
              aria-selected="false"
              onClick={() => walk(name)}
            >
              <span class="dot" style={{ background: `var(${classToken(op_class)})` }} />
              <span class="gv-match">{name}</span>
              <small>{time_ps === null ? opcode : format(time_ps, 'ps')}</small>
            </button>
          ))}
          {matches && matches.length > SHOWN && (
            <p class="muted">
              and {(matches.length - SHOWN).toLocaleString('en-US')} more: refine the search
            </p>
          )}
        </div>
      )}
    </div>
  );
}
