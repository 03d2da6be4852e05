/** One step instead of all: the chip that names it and leads back, and the list to choose one from. */
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { format } from '../../base/units';
import { useEscape } from '../../state/escape';
import { useToolKeys } from '../../state/keys';
import { stepTitle } from '../steps';
import type { StepChoice } from './model';

const KEYS = [{ keys: 'Esc', does: 'Back to all steps' }];

export function StepChip({ step, onAll }: { step: string; onAll: () => void }): VNode {
  const chip = useRef<HTMLDivElement>(null);
  useEscape(onAll);
  useToolKeys(KEYS);
  // The step was chosen further down the page; its answer is up here.
  useEffect(() => chip.current?.parentElement?.scrollIntoView({ block: 'nearest' }), [step]);
  return (
    <div class="step-chip" ref={chip}>
      <span role="status">{stepTitle(step)}</span>
      <button type="button" data-tip="Back to all steps  Esc" onClick={onAll}>
        <span aria-hidden="true">× </span>all steps
      </button>
    </div>
  );
}

export function StepPicker({
  choices,
  step,
  onStep,
}: {
  choices: readonly StepChoice[];
  step: string;
  onStep: (step: string | undefined) => void;
}): VNode {
  return (
    <label class="step-picker">
      Explain
      <select
        class="field"
        aria-label="Explain one step"
        value={step}
        onChange={(event) => onStep(event.currentTarget.value || undefined)}
      >
        <option value="">all steps</option>
        {choices.map(({ name, timePs }) => (
          <option key={name} value={name}>
            {name} · {format(timePs, 'ps')}
          </option>
        ))}
      </select>
    </label>
  );
}
