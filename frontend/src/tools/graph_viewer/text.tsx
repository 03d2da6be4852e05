/** The program's text, of any length: only the lines on screen are asked for and drawn. */
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { fetchPayload } from '../../api/client';
import { rowsOf, scalarNumber } from '../../api/table';
import type { Payload } from '../../api/types';
import { plural } from '../../base/units';
import { useLoaded } from '../../state/payload';
import { Failed, Loading } from '../../widgets/states';

const LINE_PX = 18;
const PAGE = 160;
/** Browsers cut heights beyond some 16 million pixels: longer texts scroll by a factor. */
const MOST_PX = 8_000_000;

interface TextProps {
  run: string;
  hosts: readonly string[];
  program: string;
  op: string;
  form: 'short' | 'long';
}

function useLines(
  { run, hosts, program, op, form }: TextProps,
  page: number,
): { data: Payload | null; failed: VNode | null } {
  const query = {
    tool: 'graph_viewer',
    run,
    hosts,
    params: { program, text: form, op, first_line: String(page * PAGE), n_lines: String(2 * PAGE) },
  };
  const key = JSON.stringify(query);
  const { data, error, retry } = useLoaded(key, `${run}|${program}|${form}`, (abort) =>
    fetchPayload(query, 'json', abort),
  );
  return {
    data,
    failed: error && (
      <Failed
        what="The text"
        kind={error.kind}
        message={error.message}
        remedy={error.remedy}
        onRetry={retry}
      />
    ),
  };
}

function Lines({ data, op }: { data: Payload; op: string }): VNode {
  return (
    <>
      {rowsOf(data.tables['lines']).map((row) => {
        const text = String(row['text'] ?? '');
        const name = /^\s*(?:ROOT )?%?([\w.\-:]+) = /.exec(text)?.[1];
        return (
          <div key={String(row['line'])} class={name !== undefined && name === op ? 'marked' : undefined}>
            <i>{(Number(row['line']) + 1).toLocaleString('en-US')}</i>
            {text}
          </div>
        );
      })}
    </>
  );
}

export function ProgramText(props: TextProps): VNode {
  const [page, setPage] = useState(0);
  const scroll = useRef<HTMLDivElement>(null);
  const { data, failed } = useLines(props, page);
  const nLines = data ? (scalarNumber(data, 'n_lines') ?? 0) : 0;
  const opLine = data ? scalarNumber(data, 'op_line') : null;
  const height = Math.min(MOST_PX, nLines * LINE_PX);
  const perLine = nLines ? height / nLines : LINE_PX;
  useEffect(() => {
    if (opLine === null || !scroll.current) return;
    scroll.current.scrollTop = Math.max(0, opLine * perLine - 160);
  }, [opLine, props.form, props.program, nLines > 0]);
  if (failed) return failed;
  if (!data) return <Loading what="Writing the program's text" bones={[400]} />;
  const onScroll = (): void => {
    const top = (scroll.current?.scrollTop ?? 0) / perLine;
    const next = Math.max(0, Math.floor((top - PAGE / 4) / PAGE));
    if (next !== page) setPage(next);
  };
  const first = Number(rowsOf(data.tables['lines'])[0]?.['line'] ?? 0);
  return (
    <>
      <p class="muted gv-text-note">{plural(nLines, 'line')}; very long ones are cut, the file is whole</p>
      <div
        class="gv-text"
        ref={scroll}
        onScroll={onScroll}
        tabIndex={0}
        role="region"
        aria-label="Text of the program"
      >
        <div class="gv-text-all" style={{ height: `${height}px` }}>
          <div
            class="gv-text-part"
            style={{
              transform: `translateY(${Math.min(first * perLine, Math.max(0, height - (nLines - first) * LINE_PX))}px)`,
            }}
          >
            <Lines data={data} op={props.op} />
          </div>
        </div>
      </div>
    </>
  );
}
