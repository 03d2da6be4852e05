/** The drawer at the right: one stage's times, calls and parameters, and a link to it in the trace viewer. */
import type { VNode } from 'preact';
import { exactText, format } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { useEscape } from '../../state/escape';
import { openTool } from '../../state/selection';
import { stretchOf, type Chosen, type Stage } from './model';

const TRACE_VIEWER = 'trace_viewer';

function Amount({
  name,
  value,
  unit,
  note,
}: {
  name: string;
  value: number | null;
  unit: string;
  note?: string;
}): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd data-tip={exactText(value, unit)}>
        {format(value, unit)}
        {note && ` (${note})`}
      </dd>
    </div>
  );
}

function Words({ stage, ahead, badge }: { stage: Stage; ahead: string; badge: string }): VNode {
  return (
    <p class="stage-words">
      {stage.isBottleneck && (
        <b class={badge === 'bottleneck' ? 'is-bottleneck' : undefined}>
          {badge === 'bottleneck' ? 'Bottleneck' : 'Largest stage'}
        </b>
      )}
      <span>
        {stage.isCritical
          ? 'On the critical path: the call waits for it.'
          : 'Not on the critical path: the call does not wait for it.'}
      </span>
      {stage.isAsync && <span>Prefetches on its own threads.</span>}
      {ahead && <span>{ahead}</span>}
    </p>
  );
}

function Parameters({ items }: { items: Stage['parameters'] }): VNode {
  return (
    <>
      <h3>Parameters</h3>
      {items.length ? (
        <dl>
          {items.map(([name, value]) => (
            <div key={name}>
              <dt>{name.replaceAll('_', ' ')}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      ) : (
        <p class="muted">The trace has none for this stage.</p>
      )}
    </>
  );
}

interface DrawerProps {
  stage: Stage;
  /** Why its total exceeds its consumer's; empty if it does not. */
  ahead: string;
  /** The label on the bottleneck's box. */
  badge: string;
  call: Chosen;
  onClose: () => void;
}

export function Drawer({ stage, ahead, badge, call, onClose }: DrawerProps): VNode {
  useEscape(onClose);
  const stretch = stretchOf(call, stage);
  // A stage that prefetches may take longer than the call: then it is no share of it.
  const isWithin = stage.selfPs !== null && call.durationPs !== null && stage.selfPs <= call.durationPs;
  const share = isWithin ? format((stage.selfPs ?? 0) / (call.durationPs || 1), 'fraction') : '';
  return (
    <aside class="drawer" aria-label={`Stage ${stage.name}`}>
      <header>
        <h2>{stage.name}</h2>
        <button
          type="button"
          class="button plain small"
          aria-label="Close the details"
          data-tip="Close  Esc"
          onClick={onClose}
        >
          ✕
        </button>
      </header>
      {stage.longName && <code>{stage.longName}</code>}
      <Words {...{ stage, ahead, badge }} />
      <dl>
        <Amount
          name="Self time"
          value={stage.selfPs}
          unit="ps"
          {...(share && stage.isCritical ? { note: `${share} of the call` } : {})}
        />
        <Amount name="Total, all calls" value={stage.totalPs} unit="ps" />
        <Amount name="Start" value={stage.startPs} unit="ps" />
        <Amount name="Calls" value={stage.nCalls} unit="count" />
        {stage.nIterators > 1 && <Amount name="Iterators" value={stage.nIterators} unit="count" />}
      </dl>
      <Parameters items={stage.parameters} />
      {stretch && canOpen(TRACE_VIEWER) && (
        <button
          type="button"
          class="text-link"
          onClick={() => openTool(TRACE_VIEWER, { ...stretch, ...(call.host ? { hosts: call.host } : {}) })}
        >
          Show this interval in the trace viewer
        </button>
      )}
    </aside>
  );
}
