/** A donut of shares with its names next to it: a click on a name hides that slice. */
import type { EChartsCoreOption } from 'echarts/core';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { exactText, format } from '../base/units';
import { baseOption, Chart, tipElement, type Colors } from '../widgets/chart';
import { Heading } from '../widgets/summary';
import { Tail } from '../widgets/tail';
import './donut.css';
import { isPath, shownShares, type Donut as DonutData, type Slice } from './donuts';

const SIZE_PX = 150;

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

export function Donut({ donut, onPick }: { donut: DonutData; onPick: (name: string) => void }): VNode {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const shares = shownShares(donut.slices, hidden);
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  const largest = donut.slices[0];
  return (
    <figure class="donut">
      <figcaption>
        <Heading title={donut.title} /> {donut.note && <small class="muted">{donut.note}</small>}
      </figcaption>
      <Chart
        label={`${donut.title}: ${largest ? `${largest.title} ${format(largest.fraction, 'fraction')}` : ''}`}
        height={SIZE_PX}
        optionKey={`${[...hidden].join()}|${donut.slices.map((slice) => slice.title + slice.fraction).join()}`}
        option={(color) => donutOption(donut.timeName, donut.slices, shares, color)}
        on={{ click: (event) => onPick((event as { name: string }).name) }}
      />
      <ul>
        {donut.slices.map((slice) => {
          const share = shares.get(slice.name);
          return (
            <li key={slice.name}>
              <button
                type="button"
                aria-pressed={!hidden.has(slice.name)}
                data-tip={`${slice.title}\n${format(slice.timePs, 'ps')} ${donut.timeName.toLowerCase()}`}
                onClick={() => toggle(slice.name)}
              >
                <span class="dot" style={{ background: `var(${slice.token})` }} />
                <span class="name">{isPath(slice.title) ? <Tail text={slice.title} /> : slice.label}</span>
                <b>{share === undefined ? 'off' : format(share, 'fraction')}</b>
              </button>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}
