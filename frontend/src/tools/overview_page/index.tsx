/** Overview: where the time went, and what to do about it. */
import type { VNode } from 'preact';
import type { Payload } from '../../api/types';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { StepChip } from './one_step';
import { OverviewView, shownStep } from './view';

const ALL_STEPS = { step: undefined, finding: undefined };

export function OverviewPage(props: ToolProps): VNode {
  const { params, setParams } = props;
  const chip = (payload: Payload): VNode | null => {
    const step = shownStep(payload, params);
    return step ? <StepChip step={step} onAll={() => setParams(ALL_STEPS, 'push')} /> : null;
  };
  return (
    <PayloadPage
      {...props}
      listsDiagnostics
      beside={chip}
      content={(payload) => <OverviewView payload={payload} params={params} setParams={setParams} />}
    />
  );
}
