/**
 * The chart with its filters, the table of operations, that of program and steps; next to them the card of
 * the chosen operation.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTable, readTiles } from '../../api/declared';
import type { Payload } from '../../api/types';
import { paletteToken } from '../../base/color';
import { plural } from '../../base/units';
import { Chart } from '../../widgets/chart';
import { Segments } from '../../widgets/segments';
import { Section, Tiles } from '../../widgets/summary';
import {
  parseView,
  rowFinder,
  viewChange,
  type TableColumn,
  type TableData,
  type TableView,
} from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { OpCard } from '../op_card';
import { placeCell } from '../source';
import { idleColumns, inOrder, opChoice, rowOfOp, tableData, type ToolProps } from '../tool';
import { chartOption, PROGRAM_TOKEN, STEP_TOKEN } from './chart_option';
import {
  BOUND,
  HBM,
  initialView,
  ORDER,
  isPlaced,
  mainPoints,
  MOST_DRAWN,
  peakOf,
  pointsOf,
  pointsShown,
  roofsOf,
  stepChoices,
  TABLES,
  TOTALS,
  type Point,
} from './model';
import './style.css';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;
const SHOWN = [
  { name: 'all', title: 'All' },
  { name: 'ops', title: 'Operations' },
  { name: 'steps', title: 'Program and steps' },
];
const MOST_NAMED = 10;
/** Categories that the switch leaves out; without any there is no switch. */
const FEEDS: readonly string[] = ['infeed', 'outfeed'];

function Select({
  label,
  value,
  choices,
  onChange,
}: {
  label: string;
  value: string;
  choices: readonly { name: string; title: string }[];
  onChange: (name: string) => void;
}): VNode {
  return (
    <label>
      {label}
      <select class="field" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {choices.map(({ name, title }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The text of a column's filter that selects one of its words. */
const exactly = (filter: string | undefined): string => (filter?.startsWith('=') ? filter.slice(1) : '');

function Filters({
  payload,
  params,
  setParams,
  categories,
  bounds,
}: { payload: Payload; categories: readonly string[]; bounds: readonly string[] } & ViewProps): VNode {
  const words = (names: readonly string[], all: string): { name: string; title: string }[] => [
    { name: '', title: all },
    ...names.map((name) => ({ name, title: name })),
  ];
  const memories = roofsOf(payload).filter(({ name }) => name !== 'shared');
  const steps = stepChoices(payload);
  const hasTransfers = params['transfers'] !== 'false';
  return (
    <div class="rl-tools">
      <Segments
        label="Points"
        choices={SHOWN}
        chosen={params['show'] ?? 'all'}
        onChoose={(name) => setParams({ show: name === 'all' ? undefined : name }, 'push')}
      />
      <Select
        label="Category"
        value={exactly(params['f.category'])}
        choices={words(categories, 'all')}
        onChange={(name) => setParams({ 'f.category': name ? `=${name}` : undefined }, 'push')}
      />
      <Select
        label="Limited by"
        value={exactly(params['f.bound_by'])}
        choices={words(bounds, 'any')}
        onChange={(name) => setParams({ 'f.bound_by': name ? `=${name}` : undefined }, 'push')}
      />
      {steps.length > 1 && (
        <Select
          label="Step"
          value={params['step'] ?? ''}
          choices={[{ name: '', title: 'all' }, ...steps]}
          onChange={(name) =>
            setParams(
              { step: name || undefined, ...(name && params['show'] === 'ops' ? { show: undefined } : {}) },
              'push',
            )
          }
        />
      )}
      {memories.length > 1 && (
        <Select
          label="Intensity"
          value={params['memory'] ?? HBM}
          choices={[...memories, { name: BOUND, title: 'the limiting memory' }]}
          onChange={(name) => setParams({ memory: name === HBM ? undefined : name }, 'push')}
        />
      )}
      {(!hasTransfers || categories.some((name) => FEEDS.includes(name))) && (
        <label class="switch">
          <input
            type="checkbox"
            checked={hasTransfers}
            onChange={() => setParams({ transfers: hasTransfers ? 'false' : undefined }, 'push')}
          />
          Include infeed and outfeed
        </label>
      )}
    </div>
  );
}

interface ChosenProps {
  /** Row of the chosen operation; -1: none. */
  chosenOp: number;
  choose: (point: Point) => void;
}

function Roofline({
  payload,
  data,
  view,
  categories,
  params,
  setParams,
  chosenOp,
  choose,
}: { payload: Payload; data: TableData; view: TableView; categories: readonly string[] } & ViewProps &
  ChosenProps): VNode {
  const memory = params['memory'] ?? HBM;
  const show = params['show'] ?? 'all';
  const all = useMemo(() => pointsOf(payload, memory), [payload, memory]);
  const passing = useMemo(() => {
    const passes = new Uint8Array(data.nRows);
    for (const row of rowFinder(data)({ ...view, sort: null })) passes[row] = 1;
    return passes;
  }, [data, view.query, view.filters]);
  const matching = useMemo(
    () => pointsShown(all, { show, step: params['step'] ?? '', passes: (row) => passing[row] === 1 }),
    [all, show, params['step'], passing],
  );
  const points = useMemo(
    () => (params['drawn'] === 'all' ? matching : mainPoints(matching, MOST_DRAWN, chosenOp)),
    [params['drawn'], matching, chosenOp],
  );
  const nFound = useMemo(() => matching.reduce((n, { kind }) => n + Number(kind === 'op'), 0), [matching]);
  const roofs = useMemo(
    () => roofsOf(payload).filter(({ name }) => memory === BOUND || name === memory),
    [payload, memory],
  );
  const nHidden = points.filter((point) => point.kind === 'op' && !isPlaced(point)).length;
  const chart = {
    points,
    roofs,
    peak: peakOf(payload),
    categories,
    chosen: points.find(({ kind, row }) => kind === 'op' && row === chosenOp),
  };
  const drawn = new Set(points.filter(isPlaced).map(({ category }) => category));
  const named = categories.flatMap((name, i) => (drawn.has(name) ? [{ name, i }] : []));
  return (
    <>
      <Chart
        label={`Roofline: ${plural(points.length - nHidden, 'point')}, ${plural(roofs.length, 'roof')}`}
        height={440}
        optionKey={`${points.map((point) => `${point.kind[0]}${point.row}`).join()}|${memory}|${chart.chosen?.row ?? ''}|${payload.run}|${params['transfers'] ?? ''}`}
        option={(color) => chartOption(chart, color)}
        on={{
          click: (event) => {
            const { point } = (event as { data: { point?: Point } }).data;
            if (point?.kind === 'op') choose(point);
          },
        }}
      />
      <p class="rl-legend" aria-label="Legend">
        {show !== 'steps' &&
          named
            .slice(0, MOST_NAMED)
            .map(({ name, i }) => <Key key={name} title={name} token={paletteToken(i)} />)}
        {show !== 'steps' && named.length > MOST_NAMED && <span>and {named.length - MOST_NAMED} more</span>}
        {points.some(({ kind }) => kind === 'program') && <Key title="Program" token={PROGRAM_TOKEN} />}
        {points.some(({ kind }) => kind === 'step') && <Key title="Step" token={STEP_TOKEN} />}
        {roofs.map(({ name, title }, i) => (
          <span key={name}>
            <i class={`rl-roof dash-${i % 3}`} /> {title}
          </span>
        ))}
      </p>
      {nFound > MOST_DRAWN && (
        <p class="muted prose">
          {points === matching
            ? 'Every operation is drawn. '
            : `Showing the ${MOST_DRAWN.toLocaleString('en-US')} longest of ` +
              `${nFound.toLocaleString('en-US')} operations; the table has all of them. `}
          <button
            type="button"
            class="text-link"
            onClick={() => setParams({ drawn: points === matching ? undefined : 'all' }, 'push')}
          >
            {points === matching ? 'Draw only the main ones' : 'Draw all'}
          </button>
        </p>
      )}
      {nHidden > 0 && (
        <p class="muted prose">
          {plural(nHidden, 'operation', 'operations')} cannot be plotted on log axes (zero or unknown FLOPs or
          bytes); see the table.
        </p>
      )}
    </>
  );
}

function Key({ title, token }: { title: string; token: string }): VNode {
  return (
    <span>
      <span class="dot" style={{ background: `var(${token})` }} /> {title}
    </span>
  );
}

function Programs({ payload, params, setParams }: { payload: Payload } & ViewProps): VNode {
  const programs = useMemo(() => readTable(payload, TABLES.programs), [payload]);
  const { table } = programs;
  const data = useMemo(() => tableData(table), [table]);
  const initial = useMemo(
    () => initialView(data, idleColumns(data), ['total_time_ps', 'time_per_device_ps']),
    [data],
  );
  const step = programs.text('step');
  const chosenRow = params['step']
    ? Array.from({ length: data.nRows }, (_, row) => row).find((row) => step(row) === params['step'])
    : undefined;
  const choose = (row: number): void =>
    setParams({ step: row === chosenRow ? undefined : step(row) }, 'push');
  return (
    <Section title={table.title} note={table.note ?? ''}>
      <Table
        data={data}
        label={table.title}
        view={initial}
        barToken="--c-compute"
        rowsInFull={15}
        onRow={choose}
        chosenRow={chosenRow}
      />
    </Section>
  );
}

/** The distinct words of a column, the first ones first. */
function wordsOf(text: (row: number) => string, nRows: number): string[] {
  return [...new Set(Array.from({ length: nRows }, (_, row) => text(row)))].filter(Boolean);
}

export function RooflineView({
  payload,
  run,
  hosts,
  params,
  setParams,
}: { payload: Payload } & ToolProps): VNode {
  const ops = useMemo(() => readTable(payload, TABLES.ops), [payload]);
  const { table } = ops;
  const data = useMemo(() => inOrder(tableData(table), ORDER), [table]);
  const initial = useMemo(() => initialView(data, idleColumns(data)), [data]);
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const categories = useMemo(() => wordsOf(ops.text('category'), ops.length), [ops]);
  const bounds = useMemo(() => wordsOf(ops.text('bound_by'), ops.length), [ops]);
  const { program = '', op } = params;
  const chosenRow = useMemo(() => (op ? rowOfOp(ops, program, op) : -1), [ops, program, op]);
  const programOf = ops.text('program');
  const choose = (row: number): void => setParams(opChoice(ops, row, row === chosenRow), 'push');
  const render = (column: TableColumn, row: number, text: string, full: string): VNode | undefined =>
    column.name === 'op' ? (
      <span data-tip={`${full}\n${programOf(row)}`}>{text}</span>
    ) : (
      placeCell(column, text, full)
    );
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      <div class={op ? 'op-page has-card' : 'op-page'}>
        <div class="tool-page">
          <Section
            title="Roofline"
            tip="FLOP rate and intensity of operations, and the limits that compute and each memory set"
            note={readTable(payload, TABLES.roofs).note || 'of one device; larger points take more time'}
          >
            <Filters {...{ payload, params, setParams, categories }} bounds={bounds} />
            <Roofline
              {...{ payload, data, view, categories, params, setParams }}
              chosenOp={chosenRow}
              choose={(point) => choose(point.row)}
            />
          </Section>
          <Section
            title={table.title}
            note={ops.note || 'click one for its details; the chart shows those that pass the filters'}
          >
            <Table
              data={data}
              label={table.title}
              view={view}
              onView={(next, how) => setParams(viewChange(view, next, initial), how)}
              totals={TOTALS}
              mono={['op', 'source']}
              barToken="--c-compute"
              render={render}
              onRow={choose}
              chosenRow={chosenRow < 0 ? undefined : chosenRow}
            />
          </Section>
          <Programs {...{ payload, params, setParams }} />
        </div>
        {op && (
          <OpCard
            run={run}
            hosts={hosts}
            program={program}
            op={op}
            onClose={() => setParams({ program: undefined, op: undefined }, 'push')}
          />
        )}
      </div>
    </>
  );
}
