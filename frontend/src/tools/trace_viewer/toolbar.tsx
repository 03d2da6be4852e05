/** The bar above the timeline: drag tools, search, tracks, colors, saving, zoom. */

import type { VNode } from 'preact';
import { asApiError } from '../../state/payload';
import { TOOLS } from './input/keys';
import { Legend } from './tracks/legend';
import { Saving } from './saving/saving';
import { SearchBox } from './query/search_box';
import type { Timeline } from './state/timeline';
import { TracksMenu } from './tracks/menu';

function ToolChoice({ timeline }: { timeline: Timeline }): VNode {
  return (
    <div class="tv-tools" role="radiogroup" aria-label="What a drag does">
      {TOOLS.map(({ tool, title, key, does }) => (
        <button
          key={tool}
          type="button"
          role="radio"
          aria-checked={timeline.tool.value === tool}
          aria-label={title}
          data-tip={`${does}  ${key}`}
          onClick={() => {
            timeline.tool.value = tool;
          }}
        >
          {title} <kbd>{key}</kbd>
        </button>
      ))}
    </div>
  );
}

function ZoomButtons({ timeline }: { timeline: Timeline }): VNode {
  const { camera } = timeline;
  return (
    <div class="tv-tools">
      <button
        type="button"
        aria-label="Zoom out"
        data-tip="Zoom out  s"
        onClick={() => {
          camera.zoomBy(1.5, null);
        }}
      >
        −
      </button>
      <button
        type="button"
        aria-label="Zoom in"
        data-tip="Zoom in  w"
        onClick={() => {
          camera.zoomBy(1 / 1.5, null);
        }}
      >
        +
      </button>
      <button
        type="button"
        aria-label="All: whole trace"
        data-tip="The whole trace  0"
        onClick={() => {
          camera.showAll();
        }}
      >
        All
      </button>
    </div>
  );
}

/** What people read: names of the request's parameters say nothing to them. */
function refusalText({ kind, message, remedy }: { kind: string; message: string; remedy: string }): string {
  return kind === 'bad_parameter'
    ? 'The server cannot show this part of the trace. “All” (0) leads back to the whole of it.'
    : `${message} ${remedy}`;
}

/** A refused request although there is a picture, and whether better detail is loading. */
function News({ timeline }: { timeline: Timeline }): VNode | null {
  const error = timeline.loader.refusal.value;
  if (error !== null)
    return (
      <span class="tv-refusal" role="alert">
        {refusalText(asApiError(error))}
      </span>
    );
  return timeline.loader.isBusy.value ? (
    <span class="muted tv-busy" role="status">
      loading detail…
    </span>
  ) : null;
}

export interface ToolBarProps {
  timeline: Timeline;
  run: string;
  hosts: readonly string[];
  /** Hosts of the run that are not shown because there are many. */
  note: string;
  scope: string;
}

export function ToolBar({ timeline, run, hosts, note, scope }: ToolBarProps): VNode {
  if (!timeline.facts.value) return <div class="tv-bar" />;
  return (
    <div class="tv-bar" role="toolbar" aria-label="Timeline">
      <ToolChoice timeline={timeline} />
      <SearchBox timeline={timeline} scope={scope} />
      <News timeline={timeline} />
      {note && <span class="muted">{note}</span>}
      <div class="tv-bar-end">
        <ZoomButtons timeline={timeline} />
        <TracksMenu timeline={timeline} />
        <Legend timeline={timeline} />
        <Saving timeline={timeline} run={run} hosts={hosts} />
      </div>
    </div>
  );
}
