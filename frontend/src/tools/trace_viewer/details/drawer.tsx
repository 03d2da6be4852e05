/**
 * The drawer below the timeline: the selected event, the events selected together, the marked interval, the
 * search results; one at a time, as tabs.
 */

import { useSignal, type Signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { format, plural } from '../../../base/units';
import { Details } from './details';
import { Icon } from '../../../widgets/icons';
import { MarksPanel } from '../marks/panel';
import { Results } from '../query/results';
import { SeveralPanel } from './several_panel';
import type { Timeline } from '../state/timeline';
import { TotalsPanel } from './totals';

type Tab = 'event' | 'several' | 'interval' | 'marks' | 'results';

const HEIGHT_KEY = 'tpuprof.trace_viewer.drawer';
const MIN_PX = 120;
const KEY_STEP_PX = 24;

function rememberedHeight(): number {
  const height = Number(window.localStorage.getItem(HEIGHT_KEY));
  return height >= MIN_PX ? height : 270;
}

/** Height: dragged or set with arrow keys; never more than two thirds of the page. */
function Handle({ height }: { height: Signal<number> }): VNode {
  const change = (px: number): void => {
    height.value = Math.round(Math.max(MIN_PX, Math.min(px, window.innerHeight * 0.66)));
    window.localStorage.setItem(HEIGHT_KEY, String(height.value));
  };
  return (
    <div
      class="tv-handle"
      role="separator"
      tabIndex={0}
      aria-label="Height of the drawer"
      aria-orientation="horizontal"
      aria-valuenow={height.value}
      aria-valuemin={MIN_PX}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (event.buttons & 1) change(height.value - event.movementY);
      }}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowUp' ? KEY_STEP_PX : event.key === 'ArrowDown' ? -KEY_STEP_PX : 0;
        if (step === 0) return;
        event.preventDefault();
        change(height.value + step);
      }}
    />
  );
}

interface Shown {
  readonly tab: Tab;
  readonly title: string;
  close(): void;
}

function tabsOf(timeline: Timeline): Shown[] {
  const { selected, several, marked, search } = timeline;
  const tabs: Shown[] = [];
  if (selected.value)
    tabs.push({
      tab: 'event',
      title: 'Event',
      close: () => {
        timeline.select(null);
      },
    });
  if (several.events.value.length > 0)
    tabs.push({
      tab: 'several',
      title: `Selection · ${plural(several.events.value.length, 'event')}`,
      close: () => {
        timeline.selectSeveral([]);
      },
    });
  if (marked.value)
    tabs.push({
      tab: 'interval',
      title: `Interval · ${format(marked.value.endPs - marked.value.startPs, 'ps')}`,
      close: () => {
        timeline.mark(null);
      },
    });
  if (timeline.marks.isOpen.value)
    tabs.push({
      tab: 'marks',
      title: 'Marks',
      close: () => {
        timeline.marks.isOpen.value = false;
      },
    });
  if (search.list.value !== null && search.isActive)
    tabs.push({
      tab: 'results',
      title: 'Found',
      close: () => {
        search.list.value = null;
      },
    });
  return tabs;
}

export function Drawer({ timeline, scope }: { timeline: Timeline; scope: string }): VNode | null {
  const height = useSignal(rememberedHeight());
  const chosenTab = useSignal<Tab>('event');
  const selected = timeline.selected.value;
  const marked = timeline.marked.value;
  const several = timeline.several.events.value;
  // The newest content comes to the front; going to a match from the list leaves the list open.
  useEffect(() => {
    if (selected && chosenTab.value !== 'results') chosenTab.value = 'event';
  }, [selected?.event]);
  useEffect(() => {
    if (several.length > 0) chosenTab.value = 'several';
  }, [several]);
  useEffect(() => {
    if (marked) chosenTab.value = 'interval';
  }, [marked]);
  const isListed = timeline.search.list.value !== null;
  const { isOpen, naming, pair } = timeline.marks;
  useEffect(() => {
    if (isOpen.value) chosenTab.value = 'marks';
  }, [isOpen.value, naming.value, pair.value]);
  useEffect(() => {
    if (isListed) chosenTab.value = 'results';
  }, [isListed]);
  const tabs = tabsOf(timeline);
  const shown = tabs.find(({ tab }) => tab === chosenTab.value) ?? tabs[0];
  if (!shown) return null;
  return (
    <div class="tv-drawer" style={{ height: `${String(height.value)}px` }}>
      <Handle height={height} />
      <div class="tv-tabs" role="tablist" aria-label="Below the timeline">
        {tabs.map((each) => (
          <span key={each.tab} class={each === shown ? 'is-on' : ''}>
            <button
              type="button"
              role="tab"
              aria-selected={each === shown}
              onClick={() => {
                chosenTab.value = each.tab;
              }}
            >
              {each.title}
            </button>
            <button
              type="button"
              class="tv-close"
              aria-label={`Close ${each.title}`}
              data-tip="Close  Esc"
              onClick={each.close}
            >
              <Icon name="hide" />
            </button>
          </span>
        ))}
      </div>
      {shown.tab === 'event' && selected && <Details picked={selected} timeline={timeline} scope={scope} />}
      {shown.tab === 'several' && <SeveralPanel timeline={timeline} scope={scope} />}
      {shown.tab === 'interval' && marked && (
        <TotalsPanel timeline={timeline} marked={marked} scope={scope} />
      )}
      {shown.tab === 'marks' && <MarksPanel timeline={timeline} scope={scope} />}
      {shown.tab === 'results' && <Results timeline={timeline} scope={scope} />}
    </div>
  );
}
