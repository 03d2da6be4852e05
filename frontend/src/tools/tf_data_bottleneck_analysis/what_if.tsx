/**
 * The gain of each change: the interval of one call and of the step, and the next limit; or why nothing can
 * be estimated.
 */
import type { VNode } from 'preact';
import { exactText, UNKNOWN } from '../../base/units';
import { RichText } from '../../widgets/rich_text';
import { Section } from '../../widgets/summary';
import type { Change, Estimate, WhatIf as WhatIfData } from './model';

/** The certain part of the interval is filled, the uncertain one hatched. */
function IntervalBar({
  estimate,
  longestPs,
}: {
  estimate: Estimate | null;
  longestPs: number;
}): VNode | null {
  if (!estimate || !longestPs) return null;
  const percent = (ps: number): string => `${(ps / longestPs) * 100}%`;
  return (
    <span class="interval" aria-hidden="true">
      <i style={{ width: percent(estimate.lowPs) }} />
      <i class="unsure" style={{ width: percent(estimate.highPs - estimate.lowPs) }} />
    </span>
  );
}

function Interval({ estimate }: { estimate: Estimate | null }): VNode {
  if (!estimate) return <td class="n unknown">{UNKNOWN}</td>;
  const { lowPs, highPs, text } = estimate;
  return (
    <td
      class="n"
      data-tip={
        lowPs === highPs ? exactText(lowPs, 'ps') : `${exactText(lowPs, 'ps')} to ${exactText(highPs, 'ps')}`
      }
    >
      {text}
    </td>
  );
}

function ChangeRow({ change, data }: { change: Change; data: WhatIfData }): VNode {
  const { latency, step, limitedBy, note, isNow } = change;
  return (
    <tr class={isNow ? 'now' : undefined}>
      <th scope="row">
        <RichText text={change.change} />
      </th>
      <Interval estimate={latency} />
      {data.hasSteps && <Interval estimate={step} />}
      <td class="bars">
        <IntervalBar estimate={data.hasSteps ? step : latency} longestPs={data.longestPs} />
      </td>
      <td class="words">
        {!latency && !step ? (
          `cannot estimate: ${note || 'the trace lacks the data'}`
        ) : (
          <RichText text={[note, limitedBy && `limited by ${limitedBy}`].filter(Boolean).join('; ')} />
        )}
      </td>
    </tr>
  );
}

export function WhatIf({ data, title, note }: { data: WhatIfData; title: string; note: string }): VNode {
  if (data.reason) {
    return (
      <Section title={title}>
        <p class="prose">
          Cannot estimate: <RichText text={data.reason} />
        </p>
      </Section>
    );
  }
  return (
    <Section title={title} note={note || 'estimated from this trace, as an interval'}>
      <table class="what-if" aria-label={title}>
        <thead>
          <tr>
            <th scope="col">Change</th>
            <th scope="col" class="n">
              One call
            </th>
            {data.hasSteps && (
              <th scope="col" class="n">
                Step
              </th>
            )}
            <th scope="col" class="bars">
              <span class="hidden-text">{data.hasSteps ? 'Step as a bar' : 'Call as a bar'}</span>
            </th>
            <th scope="col">Next limit</th>
          </tr>
        </thead>
        <tbody>
          {data.changes.map((change, i) => (
            <ChangeRow key={i} change={change} data={data} />
          ))}
        </tbody>
      </table>
    </Section>
  );
}
