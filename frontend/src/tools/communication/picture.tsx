/** One step on one device: compute, lanes of operations that move data, and what is exposed of them. */
import type { VNode } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { ticksOf } from '../../base/ticks';
import { format } from '../../base/units';
import { useWidth } from '../../widgets/size';
import { amountsOf, boxText, captionsOf, type Box, type Picture } from './model';

const LEFT_PX = 84;
const TOP_PX = 8;
const LANE_PX = 34;
const BOX_PX = 24;
const AXIS_PX = 26;
/** From the bottom of the lane of exposed time up to the amounts' baseline. */
const AMOUNT_PX = 7;
const LEAST_BOX_PX = 1;
const TICK_PX = 90;
/** Labels nearer to the edge than this end at their tick. */
const EDGE_PX = 24;
const LETTER_PX = 6.6;

interface Scale {
  x: (timePs: number) => number;
  bottom: number;
}

function Grid({ totalPs, scale, width }: { totalPs: number; scale: Scale; width: number }): VNode {
  const ticks = ticksOf(0, totalPs, Math.max(1, Math.floor((width - LEFT_PX) / TICK_PX)));
  return (
    <g>
      {ticks.map((tick) => (
        <g key={tick}>
          <line class="grid" x1={scale.x(tick)} x2={scale.x(tick)} y1={TOP_PX} y2={scale.bottom} />
          <text
            x={scale.x(tick)}
            y={scale.bottom + 16}
            text-anchor={!tick ? 'start' : scale.x(tick) + EDGE_PX > width ? 'end' : 'middle'}
          >
            {tick ? format(tick, 'ps') : '0'}
          </text>
        </g>
      ))}
    </g>
  );
}

function BoxRect({ box, scale }: { box: Box; scale: Scale }): VNode {
  const left = scale.x(box.startPs);
  const width = Math.max(scale.x(box.endPs) - left - 0.5, LEAST_BOX_PX);
  const top = TOP_PX + box.lane * LANE_PX;
  const isTotal = box.kind === 'total';
  return (
    <>
      {isTotal && <rect class="band" x={left} y={TOP_PX} width={width} height={scale.bottom - TOP_PX} />}
      <rect
        class={`box ${box.kind}`}
        x={left}
        y={isTotal ? top + 8 : top + 2}
        width={width}
        height={isTotal ? 6 : BOX_PX}
        rx={Math.min(2, width / 2)}
        data-tip={boxText(box)}
      />
    </>
  );
}

export function StepPicture({
  picture,
  totalPs,
  label,
}: {
  picture: Picture;
  totalPs: number;
  label: string;
}): VNode {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const { lanes, boxes } = picture;
  const bottom = TOP_PX + lanes.length * LANE_PX;
  const room = Math.max(width - LEFT_PX - 8, 1);
  const scale: Scale = { x: (timePs) => LEFT_PX + (timePs / (totalPs || 1)) * room, bottom };
  const captions = useMemo(
    () => captionsOf(picture, (op) => ((op.length * LETTER_PX + 10) * totalPs) / room, totalPs),
    [picture, totalPs, room],
  );
  const amounts = useMemo(
    () => amountsOf(picture, (text) => ((text.length * LETTER_PX + 6) * totalPs) / room, totalPs),
    [picture, totalPs, room],
  );
  // Bands of exposed time lie below everything else.
  const ordered = useMemo(
    () => [...boxes].sort((a, b) => Number(b.kind === 'total') - Number(a.kind === 'total')),
    [boxes],
  );
  return (
    <div class="comm-picture" ref={frame}>
      {width > 0 && (
        <svg width={width} height={bottom + AXIS_PX} role="img" aria-label={label}>
          <Grid totalPs={totalPs} scale={scale} width={width} />
          {ordered.map((one, i) => (
            <BoxRect key={i} box={one} scale={scale} />
          ))}
          {captions.map(({ box, isInside }) => (
            <text
              key={`${box.lane} ${box.startPs}`}
              class={isInside ? `caption in ${box.kind}` : 'caption'}
              x={scale.x(isInside ? box.startPs : box.endPs) + 5}
              y={TOP_PX + box.lane * LANE_PX + 18}
            >
              {box.op}
            </text>
          ))}
          {amounts.map(({ text, atPs }) => (
            <text key={atPs} class="amount" x={scale.x(atPs)} y={bottom - AMOUNT_PX} text-anchor="middle">
              {text}
            </text>
          ))}
          {lanes.map((lane, i) => (
            <text key={lane} class="lane" x={0} y={TOP_PX + i * LANE_PX + 18}>
              {lane}
            </text>
          ))}
        </svg>
      )}
    </div>
  );
}
