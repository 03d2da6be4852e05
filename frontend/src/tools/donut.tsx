/**
 * Shares as donuts or stacked bars with their names next to them: a click on a name hides that slice, a click
 * on a slice picks it.
 */
import type { EChartsCoreOption } from 'echarts/core';
import type { VNode } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { exactText, format } from '../base/units';
import { baseOption, Chart, tipElement, type Colors } from '../widgets/chart';
import { Heading } from '../widgets/summary';
import { shortener, type Shorten } from '../widgets/table/shortening';
import { useRoom } from '../widgets/table/widths';
import './donut.css';
import { isOneSided, shownShares, type Donut as DonutData, type Slice } from './donuts';

const SIZE_PX = 150;
/** Average of the names' font, and the room that their dots and shares take. */
const CHAR_PX = 6.4;
const AROUND_NAME_PX = 92;
/** Names in a bar's legend stand side by side. */
const BAR_NAME_CHARS = 44;

function donutOption(
  timeName: string,
  slices: readonly Slice[],
  shares: ReadonlyMap<string, number>,
  color: Colors,
): EChartsCoreOption {
  const base = baseOption(color);
  const shown = slices.filter((slice) => shares.has(slice.name));
  const tip = ({ dataIndex }: { dataIndex: number }): HTMLElement => {
    const slice = shown[dataIndex] as Slice;
    const dot = color(slice.token);
    return tipElement(slice.title, [
      { color: dot, name: timeName, value: format(slice.timePs, 'ps') },
      {
        color: 'transparent',
        name: 'Share',
        value: exactText(Number((shares.get(slice.name) ?? 0).toPrecision(4)), 'fraction'),
      },
    ]);
  };
  return {
    ...base,
    tooltip: { ...(base['tooltip'] as object), confine: false, appendTo: 'body', formatter: tip },
    series: [
      {
        type: 'pie',
        radius: ['58%', '96%'],
        label: { show: false },
        emphasis: { scale: false, itemStyle: { opacity: 0.85 } },
        itemStyle: { borderColor: color('--bg'), borderWidth: 1 },
        data: shown.map((slice) => ({
          name: slice.title,
          value: shares.get(slice.name) ?? 0,
          itemStyle: { color: color(slice.token) },
        })),
      },
    ],
  };
}

interface Shown {
  shares: ReadonlyMap<string, number>;
  hidden: ReadonlySet<string>;
  toggle: (name: string) => void;
}

function useShown(donut: DonutData): Shown {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  return { shares: shownShares(donut.slices, hidden), hidden, toggle };
}

function Names({ donut, shown, nChars }: { donut: DonutData; shown: Shown; nChars: number }): VNode {
  const shorten: Shorten = useMemo(() => shortener(donut.slices.map(({ label }) => label)), [donut]);
  return (
    <ul>
      {donut.slices.map((slice) => {
        const share = shown.shares.get(slice.name);
        return (
          <li key={slice.name}>
            <button
              type="button"
              aria-pressed={!shown.hidden.has(slice.name)}
              data-tip={`${slice.title}\n${format(slice.timePs, 'ps')} ${donut.timeName.toLowerCase()}`}
              onClick={() => shown.toggle(slice.name)}
            >
              <span class="dot" style={{ background: `var(${slice.token})` }} />
              <span class="name">{nChars ? shorten(slice.label, nChars) : slice.label}</span>
              <b>{share === undefined ? 'off' : format(share, 'fraction')}</b>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function Caption({ donut }: { donut: DonutData }): VNode {
  return (
    <figcaption>
      <Heading title={donut.title} /> {donut.note && <small class="muted">{donut.note}</small>}
    </figcaption>
  );
}

interface ShareProps {
  donut: DonutData;
  onPick: (name: string) => void;
}

export function Donut({ donut, onPick }: ShareProps): VNode {
  const shown = useShown(donut);
  const list = useRef<HTMLDivElement>(null);
  const roomPx = useRoom(list);
  const largest = donut.slices[0];
  return (
    <figure class="donut">
      <Caption donut={donut} />
      <div class="donut-body">
        <Chart
          label={`${donut.title}: ${largest ? `${largest.title} ${format(largest.fraction, 'fraction')}` : ''}`}
          height={SIZE_PX}
          optionKey={`${[...shown.hidden].join()}|${donut.slices.map((slice) => slice.title + slice.fraction).join()}`}
          option={(color) => donutOption(donut.timeName, donut.slices, shown.shares, color)}
          on={{ click: (event) => onPick((event as { name: string }).name) }}
        />
        <div ref={list}>
          <Names
            donut={donut}
            shown={shown}
            nChars={roomPx ? Math.max(8, Math.floor((roomPx - AROUND_NAME_PX) / CHAR_PX)) : 0}
          />
        </div>
      </div>
    </figure>
  );
}

/** Shares as one bar over the whole width. */
function ShareBar({ donut, onPick }: ShareProps): VNode {
  const shown = useShown(donut);
  const parts = donut.slices.filter((slice) => (shown.shares.get(slice.name) ?? 0) > 0);
  const text = parts.map(({ title, fraction }) => `${title} ${format(fraction, 'fraction')}`).join(', ');
  return (
    <figure class="share-bar">
      <Caption donut={donut} />
      <div class="stack-bar" role="img" aria-label={`${donut.title}: ${text}`}>
        {parts.map((slice) => (
          <div
            key={slice.name}
            data-tip={`${slice.title}\n${format(slice.timePs, 'ps')}, ${format(slice.fraction, 'fraction')}`}
            style={{ flex: `${shown.shares.get(slice.name) ?? 0} 1 0`, background: `var(${slice.token})` }}
            onClick={() => onPick(slice.title)}
          />
        ))}
      </div>
      <Names donut={donut} shown={shown} nChars={BAR_NAME_CHARS} />
    </figure>
  );
}

/**
 * Several tables of shares: donuts side by side; those of which one slice is nearly all (or, with `areBars`,
 * all) are stacked bars.
 */
export function ShareCharts({
  donuts,
  onPick,
  areBars = false,
}: {
  donuts: readonly DonutData[];
  onPick: (donut: string, name: string) => void;
  areBars?: boolean;
}): VNode {
  const isBar = (donut: DonutData): boolean => areBars || isOneSided(donut);
  const rings = donuts.filter((donut) => !isBar(donut));
  const bars = donuts.filter(isBar);
  return (
    <>
      {rings.length > 0 && (
        <div class="donuts">
          {rings.map((donut) => (
            <Donut key={donut.name} donut={donut} onPick={(name) => onPick(donut.name, name)} />
          ))}
        </div>
      )}
      {bars.length > 0 && (
        <div class="share-bars">
          {bars.map((donut) => (
            <ShareBar key={donut.name} donut={donut} onPick={(name) => onPick(donut.name, name)} />
          ))}
        </div>
      )}
    </>
  );
}
