/**
 * Numbers, the map with its slider and card, time breakdown by core and by step, stragglers, collectives,
 * links.
 */
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { readScalar, readTable, readTiles } from '../../api/declared';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { plural } from '../../base/units';
import { openTool } from '../../state/selection';
import { StepChart } from '../../widgets/step_chart';
import { Section, Tiles } from '../../widgets/summary';
import { Table } from '../../widgets/table/table';
import { StepSection } from '../step_section';
import { seriesOf, stepNames } from '../steps';
import { useTableView } from '../table_view';
import { tableData, type ToolProps } from '../tool';
import { CoreCard } from './card';
import { Channels } from './channels';
import { useDetail } from './detail';
import { PodMap } from './map';
import {
  coresOf,
  podOf,
  sliceOf,
  slowestFirst,
  stepOf,
  unitOf,
  SCALARS,
  TABLES,
  type ChannelRows,
  type CoreRows,
  type PartRows,
  type Pod,
  type Slice,
} from './model';
import './style.css';

type ViewProps = ToolProps & { payload: Payload };
type PartProps = ToolProps & { pod: Pod };
const MOST_BARS = 256;
/** Up to this many cores that do the same are one line. */
const FEW_ALIKE = 8;
const ROWS_HIDDEN = ['source_row', 'target_row', 'core_row'];

/** One core, or a few that do the same: there is nothing to compare, so only the parts of one are shown. */
function OneForAll({ pod, cores, step }: { pod: Pod; cores: CoreRows; step: string | undefined }): VNode {
  const stepTitle = !pod.steps ? 'whole capture' : step === undefined ? 'mean of all steps' : `step ${step}`;
  return (
    <Section
      title={cores.length > 1 ? 'Where the time of each goes' : 'Where its time goes'}
      tip="The parts of the core's step; they add up to it"
      note={cores.length > 1 ? `${stepTitle}; one of ${cores.length} that do the same` : stepTitle}
    >
      <CoreCard
        cores={coresOf(cores)}
        rows={cores}
        parts={pod.parts}
        channels={null}
        links={[]}
        core={0}
        step=""
      />
    </Section>
  );
}

/** Parts of the step, one bar per core; of very many cores the slowest. */
function ByCore({
  title,
  cores,
  parts,
  params,
  setParams,
}: { title: string; cores: CoreRows; parts: PartRows } & Pick<
  ToolProps,
  'params' | 'setParams'
>): VNode | null {
  const rows = useMemo(() => slowestFirst(cores, MOST_BARS), [cores]);
  const unit = unitOf(cores);
  const names = useMemo(
    () =>
      rows.map((row) =>
        cores
          .text('core')(row)
          .replace(/^(?=\d)/, 'host '),
      ),
    [cores, rows],
  );
  const series = useMemo(
    () =>
      seriesOf(cores, parts.all()).map((layer) => ({
        ...layer,
        values: rows.map((row) => layer.values[row] ?? null),
      })),
    [cores, parts, rows],
  );
  const note =
    rows.length < cores.length
      ? `the ${rows.length} of ${cores.length.toLocaleString('en-US')} with the longest own time`
      : plural(rows.length, unit);
  return (
    <StepChart
      title={title}
      tip={`How each ${unit} spends the step, split into parts that add up to it`}
      note={note}
      names={names}
      axisName={unit}
      series={series}
      zoom={params['bars']}
      onZoom={(bars) => setParams({ bars }, 'replace')}
    />
  );
}

type LinkProps = Pick<ToolProps, 'params' | 'setParams'>;

function Plain({
  name,
  table,
  empty,
  onRow,
  chosenRow,
  hidden = [],
  barToken = '--c-compute',
  ...link
}: {
  /** Of the table in the page's link. */
  name: string;
  table: PayloadTable;
  empty: string;
  onRow?: (row: number) => void;
  chosenRow?: number;
  hidden?: string[];
  barToken?: string;
} & LinkProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const [view, setView] = useTableView(name, link, data, { hidden: [...ROWS_HIDDEN, ...hidden] });
  return (
    <Section title={table.title} note={table.note}>
      {data.nRows ? (
        <Table
          data={data}
          view={view}
          onView={setView}
          label={table.title}
          rowsInFull={12}
          maxHeight="420px"
          mono={['op', 'ops', 'groups']}
          barToken={barToken}
          {...(onRow ? { onRow } : {})}
          {...(chosenRow === undefined ? {} : { chosenRow })}
        />
      ) : (
        <p class="pod-hint">{empty}</p>
      )}
    </Section>
  );
}

/**
 * The page below the map: it waits until the map is drawn. `isOne`: there is no map, as there is nothing to
 * compare.
 */
function Rest({
  pod,
  params,
  setParams,
  cores,
  chosen,
  isOne,
  slice,
  names,
  channels,
  step,
  ...props
}: PartProps & {
  cores: CoreRows;
  channels: ChannelRows;
  /** The step that the channels are of, -1: the mean of all. */
  step: number;
  chosen: number;
  isOne: boolean;
  slice: Slice | null;
  names: readonly string[];
}): VNode {
  const { parts, steps, collectives, processGroups } = pod;
  const places = useMemo(() => coresOf(pod.cores), [pod]);

  const layers = useMemo(() => parts.all(), [parts]);
  return (
    <>
      {!isOne && channels.length > 0 && (
        <div class="pod-rest">
          <Channels
            {...props}
            params={params}
            setParams={setParams}
            channels={channels}
            cores={places}
            slice={slice}
            chosen={stepOf(params['channel'], channels.length)}
            steps={names}
            step={step}
          />
        </div>
      )}
      {!isOne && (
        <div class="pod-rest">
          <ByCore
            title={`${steps ? 'Step' : 'Capture'} by ${unitOf(cores)}`}
            cores={cores}
            parts={parts}
            params={params}
            setParams={setParams}
          />
        </div>
      )}
      {steps && steps.length > 1 && (
        <div class="pod-rest">
          <StepSection steps={steps} parts={layers} params={params} setParams={setParams} />
        </div>
      )}
      {(!isOne || collectives.length > 0) && (
        <div class="pod-rest">
          <Plain
            name="collectives"
            {...{ params, setParams }}
            table={collectives.table}
            empty={`No collective was traced on these ${unitOf(cores)}s.`}
            barToken="--c-collective"
            chosenRow={chosen}
            onRow={(row) => setParams({ collective: row === chosen ? undefined : String(row) }, 'replace')}
          />
        </div>
      )}
      {processGroups && (
        <div class="pod-rest">
          <Plain
            name="process_groups"
            {...{ params, setParams }}
            table={processGroups.table}
            empty=""
            barToken="--c-collective"
          />
        </div>
      )}
      {!isOne && <LastTables {...{ channels, cores, params, setParams }} areTpus={pod.topology !== null} />}
    </>
  );
}

/** The cores, after why there is no channel between those of TPUs. */
function LastTables({
  channels,
  cores,
  areTpus,
  ...link
}: Pick<PartProps, 'params' | 'setParams'> & {
  channels: ChannelRows;
  cores: CoreRows;
  areTpus: boolean;
}): VNode {
  return (
    <>
      {areTpus && !channels.length && (
        <div class="pod-rest">
          <Plain
            name="channels"
            {...link}
            table={channels.table}
            empty={
              'No channel between two of these cores: channels come from sends, receives and permutations ' +
              'whose HLO is in the trace.'
            }
          />
        </div>
      )}
      <div class="pod-rest">
        <Plain name="cores" {...link} table={cores.table} empty="" />
      </div>
    </>
  );
}

/** The channels in the step of the link (until they are loaded, their means), and which step that is. */
function useChannels(props: ToolProps, pod: Pod, step: number): [ChannelRows, number] {
  const params = step < 0 || !pod.channels.length ? null : { step: String(step) };
  const { data } = useDetail(props, 'channels', params, 'columns', 'channels');
  const detail = params && data;
  const rows = useMemo(() => (detail ? readTable(detail, TABLES.channels) : pod.channels), [detail, pod]);
  return [rows, detail ? step : -1];
}

export function PodViewerView(props: ViewProps): VNode {
  const { payload, params, setParams } = props;
  const pod = useMemo(() => podOf(payload), [payload]);
  const { steps, stragglers, collectives } = pod;
  const names = useMemo(() => (steps ? stepNames(steps) : []), [steps]);
  const slice = useMemo(() => sliceOf(pod), [pod]);
  const linked = stepOf(params['step'], names.length);
  const { data } = useDetail(props, 'cores', linked < 0 ? null : { step: String(linked) }, 'json', 'cores');
  const detail = linked < 0 ? null : data;
  const [isDrawn, setDrawn] = useState(false);
  const cores = useMemo(() => (detail ? readTable(detail, TABLES.cores) : pod.cores), [detail, pod]);
  const [channels, ofStep] = useChannels(props, pod, linked);
  const chosen = stepOf(params['collective'], collectives.length);
  const groups = chosen >= 0 ? collectives.text('groups')(chosen) : '';
  const isAlike = readScalar(payload, SCALARS.is_alike)?.value === true;
  const isOne = isAlike && cores.length <= FEW_ALIKE && !stragglers.length && !pod.channels.length;
  const openHost = (row: number): void => openTool('trace_viewer', { hosts: stragglers.text('host')(row) });
  return (
    <>
      {!isOne && <Tiles tiles={readTiles(payload, detail ?? payload)} />}
      {stragglers.length > 0 && (
        <Plain
          name="stragglers"
          {...{ params, setParams }}
          table={stragglers.table}
          empty=""
          onRow={openHost}
        />
      )}
      {!isOne && (
        <PodMap
          {...props}
          pod={pod}
          cores={cores}
          channels={channels}
          slice={slice}
          steps={names}
          groups={groups}
          onDrawn={() => setDrawn(true)}
        />
      )}
      {isOne && <OneForAll pod={pod} cores={cores} step={names[linked]} />}
      {(isDrawn || isOne) && (
        <Rest {...props} {...{ pod, cores, channels, chosen, isOne, slice, names }} step={ofStep} />
      )}
    </>
  );
}
