/** The program's text, of any length: only the lines on screen are requested and drawn. */
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { fetchPayload } from '../../api/client';
import { readNumber, readTable } from '../../api/declared';
import { GRAPH_VIEWER } from '../../api/tables/graph_viewer';
import type { Payload } from '../../api/types';
import { plural } from '../../base/units';
import { useLoaded } from '../../state/payload';
import { Failed, Loading } from '../../widgets/states';

const { tables: TABLES, scalars: SCALARS } = GRAPH_VIEWER.text;
const LINE_PX = 18;
const PAGE = 160;
/** Browsers limit heights to about 16 million pixels: longer texts scroll by a factor. */
const MOST_PX = 8_000_000;

interface TextProps {
  run: string;
  hosts: readonly string[];
  program: string;
  op: string;
  style: 'short' | 'long';
}

function useLines(
  { run, hosts, program, op, style }: TextProps,
  page: number,
): { data: Payload | null; failed: VNode | null } {
  const query = {
    tool: 'graph_viewer',
    question: 'text',
    run,
    hosts,
    params: { program, style, op, first_line: String(page * PAGE), n_lines: String(2 * PAGE) },
  };
  const key = JSON.stringify(query);
  const { data, error, retry } = useLoaded(key, `${run}|${program}|${style}`, (abort) =>
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
        details={error.details}
        onRetry={retry}
      />
    ),
  };
}

function Lines({ data, op }: { data: Payload; op: string }): VNode {
  return (
    <>
      {readTable(data, TABLES.lines)
        .all()
        .map(({ line, text }) => {
          const name = /^\s*(?:ROOT )?%?([\w.\-:]+) = /.exec(text)?.[1];
          return (
            <div key={line} class={name !== undefined && name === op ? 'marked' : undefined}>
              <i>{((line ?? 0) + 1).toLocaleString('en-US')}</i>
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
  const nLines = data ? (readNumber(data, SCALARS.n_lines) ?? 0) : 0;
  const opLine = data ? readNumber(data, SCALARS.op_line) : null;
  const height = Math.min(MOST_PX, nLines * LINE_PX);
  const perLine = nLines ? height / nLines : LINE_PX;
  useEffect(() => {
    if (opLine === null || !scroll.current) return;
    scroll.current.scrollTop = Math.max(0, opLine * perLine - 160);
  }, [opLine, props.style, props.program, nLines > 0]);
  if (failed) return failed;
  if (!data) return <Loading what="Writing the program's text" bones={[400]} />;
  const onScroll = (): void => {
    const top = (scroll.current?.scrollTop ?? 0) / perLine;
    const next = Math.max(0, Math.floor((top - PAGE / 4) / PAGE));
    if (next !== page) setPage(next);
  };
  const first = readTable(data, TABLES.lines).number('line')(0) ?? 0;
  return (
    <>
      <p class="muted gv-text-note">
        {plural(nLines, 'line')}; very long lines are truncated here, not in the file
      </p>
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
