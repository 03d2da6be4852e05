/** The boxes and lines of the graph. */
import type { VNode } from 'preact';
import { tokenColor } from '../../base/color';
import { format, plural } from '../../base/units';
import { TextFitter } from '../../canvas/text';
import { stageLabel, type Graph, type Stage } from './model';
import { NODE, type Placed } from './placed';

const NAME_PX = NODE.width - 24;
const ASYNC_PX = 38;
const NAME_FONT = '600 13px';

let fitter: TextFitter | null = null;

/** The name, truncated to the available width: measured as the browser draws it, if it has a canvas. */
function fitted(name: string, widthPx: number): string {
  const context = fitter ? null : document.createElement('canvas').getContext('2d');
  if (context) context.font = `${NAME_FONT} ${tokenColor('--font') || 'sans-serif'}`;
  fitter ??= new TextFitter((text) => context?.measureText(text).width ?? text.length * 8);
  return fitter.fit(name, widthPx);
}

function tipOf(stage: Stage): string {
  const lines = [stage.longName || stage.name, plural(stage.nCalls ?? 0, 'call')];
  if (stage.nIterators > 1) lines.push(`${plural(stage.nIterators, 'iterator')} of this stage combined`);
  if (stage.isAsync) lines.push('Prefetches on its own threads');
  return lines.join('\n');
}

interface StageProps {
  stage: Stage;
  at: { x: number; y: number };
  badge: string;
  isChosen: boolean;
  isTabStop: boolean;
  onChoose: (id: number) => void;
  onFocus: (id: number) => void;
}

/** The bottleneck's label is on the outline: color alone would not be enough. */
function Badge({ word }: { word: string }): VNode {
  return (
    <g class={word === 'bottleneck' ? 'badge' : 'badge calm'}>
      <rect x={NODE.width - 86} y={-9} width={76} height={17} rx={3} />
      <text x={NODE.width - 48} y={3.5} text-anchor="middle">
        {word}
      </text>
    </g>
  );
}

function StageBox({ stage, at, badge, isChosen, isTabStop, onChoose, onFocus }: StageProps): VNode {
  const kinds = [
    'stage',
    stage.isCritical ? 'critical' : 'aside',
    stage.isBottleneck ? badge : '',
    isChosen ? 'chosen' : '',
  ];
  const many = stage.nIterators > 1 ? ` ×${stage.nIterators}` : '';
  return (
    <g
      class={kinds.filter(Boolean).join(' ')}
      transform={`translate(${at.x - NODE.width / 2} ${at.y - NODE.height / 2})`}
      role="button"
      tabindex={isTabStop ? 0 : -1}
      aria-label={stageLabel(stage, badge)}
      aria-pressed={isChosen}
      data-stage={stage.id}
      data-tip={tipOf(stage)}
      onClick={() => onChoose(stage.id)}
      onFocus={() => onFocus(stage.id)}
    >
      <rect class="box" width={NODE.width} height={NODE.height} rx={6} />
      <text class="name" x={12} y={22}>
        {fitted(stage.name, NAME_PX - (stage.isAsync ? ASYNC_PX : 0) - many.length * 9) + many}
      </text>
      {stage.isAsync && (
        <text class="ahead" x={NODE.width - 10} y={22} text-anchor="end">
          async
        </text>
      )}
      <text class="times" x={12} y={41}>
        {`self ${format(stage.selfPs, 'ps')} · total ${format(stage.totalPs, 'ps')}`}
      </text>
      {stage.isBottleneck && <Badge word={badge} />}
    </g>
  );
}

export interface StagesProps {
  graph: Graph;
  placed: Placed;
  badge: string;
  chosen: number | null;
  tabStop: number | null;
  onChoose: (id: number) => void;
  onFocus: (id: number) => void;
}

export function Stages({ graph, placed, badge, chosen, tabStop, ...hands }: StagesProps): VNode {
  return (
    <g>
      {graph.stages.map((stage) => {
        const center = placed.at.get(stage.id);
        return (
          center && (
            <StageBox
              key={stage.id}
              stage={stage}
              at={center}
              badge={badge}
              isChosen={stage.id === chosen}
              isTabStop={stage.id === tabStop}
              {...hands}
            />
          )
        );
      })}
    </g>
  );
}

export function Links({ graph, placed }: { graph: Graph; placed: Placed }): VNode {
  const drawn = graph.links.map((link, i) => ({ ...link, path: placed.paths[i] ?? '' }));
  // The critical path is drawn on top.
  drawn.sort((a, b) => Number(a.isCritical) - Number(b.isCritical));
  return (
    <g>
      {drawn.map(({ from, to, isCritical, path }, i) => (
        <path key={`${from} ${to} ${i}`} class={isCritical ? 'link critical' : 'link'} d={path} />
      ))}
    </g>
  );
}
