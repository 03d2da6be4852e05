/** Places in source code: links by the rules of the server's owner, and the lines around a place. */
import type { ComponentChildren, VNode } from 'preact';
import type { Payload } from '../api/types';
import { readIfAny } from '../api/declared';
import { OP_PROFILE } from '../api/tables/op_profile';
import { sourceLink } from '../base/source_link';
import { runs } from '../state/catalog';
import './source.css';

/** All answers with lines of source code have the same table. */
const LINES = OP_PROFILE.op.tables.source_lines;

/** A place, linked where a rule says where its file is; `children`: other text for it. */
export function Place({ place, children }: { place: string; children?: ComponentChildren }): VNode {
  const address = sourceLink(place, runs.value?.sources?.links ?? []);
  const shown = children ?? place;
  if (!address) return <>{shown}</>;
  return (
    <a
      class="source-link"
      href={address}
      target="_blank"
      rel="noopener noreferrer"
      data-tip={`${place}\nat ${address}`}
      onClick={(event) => {
        event.stopPropagation();
      }}
    >
      {shown}
    </a>
  );
}

/** The columns of tables that hold places. */
const COLUMNS = new Set(['source', 'place']);

/** For tables' `render`: the links of the columns with places. */
export function placeCell(column: { name: string }, text: string, full: string): VNode | undefined {
  return COLUMNS.has(column.name) && full ? <Place place={full}>{text}</Place> : undefined;
}

/** Why settings of the server's owner do not apply, for the place where their effect is missed. */
export function SourceProblems(): VNode | null {
  const problems = runs.value?.sources?.problems ?? [];
  if (!problems.length) return null;
  return (
    <p class="source-problems muted">
      {problems.map((problem) => (
        <span key={problem}>{problem} </span>
      ))}
      Correct the variable, then restart the server.
    </p>
  );
}

/** The lines around the place that an answer is about, if the server may read them. */
export function SourceLines({ payload }: { payload: Payload }): VNode | null {
  const rows = readIfAny(payload, LINES);
  if (!rows?.table.n_rows) return null;
  const { note, title, description } = rows.table;
  return (
    <section class="source-lines" aria-label={title}>
      <h3 data-tip={description}>
        {title}{' '}
        <small class="muted">
          <Place place={note} />, as it is now
        </small>
      </h3>
      <pre>
        {rows.all().map(({ line, code, is_place: isPlace }) => (
          <span key={line} class={isPlace ? 'is-place' : undefined}>
            <i>{line}</i>
            {`${code}\n`}
          </span>
        ))}
      </pre>
    </section>
  );
}
