/** Targets and interval of the monitor; starts and stops it. */
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { CaptureInfo } from '../../api/capture';
import { recall, RECENT_KEY, remember } from '../../base/storage';
import { isMonitorStarting, monitorError, samples, startMonitor, stopMonitor } from '../../state/monitor';
import { choose, toolParams } from '../../state/selection';
import { plural } from '../../base/units';
import { withRecent, type FieldErrors, type TargetForm } from '../capture/model';
import { OptionField } from '../capture/option_fields';
import { TargetFields } from '../capture/target_fields';
import {
  checkMonitor,
  monitorParams,
  monitorRequest,
  restoreMonitor,
  targetsOf,
  type MonitorForm,
} from './model';

const FORM_KEY = 'tpuprof.monitor';

function serverErrors(): FieldErrors {
  const error = monitorError.value;
  return error?.parameter
    ? { [error.parameter]: [error.message, error.remedy].filter(Boolean).join(' ') }
    : {};
}

/** While it runs: the targets, and the button that stops it. */
export function Watching(): VNode {
  const all = samples.value;
  const targets = targetsOf(all);
  return (
    <div class="watching">
      <button
        type="button"
        class="button"
        disabled={isMonitorStarting.value}
        onClick={() => void stopMonitor()}
      >
        {isMonitorStarting.value ? 'Starting…' : 'Stop'}
      </button>
      <p>
        Watching{targets.length ? ' ' : ''}
        <b>{targets.join(', ')}</b>
        <span class="muted" role="status">
          {all.length ? ` · ${plural(all.length, 'sample')}` : ': waiting for the first sample'} · keeps
          running while you view other pages
        </span>
      </p>
    </div>
  );
}

export function MonitorFormView({ info }: { info: CaptureInfo }): VNode {
  const offered = info.monitor_options;
  const [form, setForm] = useState<MonitorForm>(() =>
    restoreMonitor(toolParams.value, recall(FORM_KEY), info.default_targets, offered),
  );
  const [ownErrors, setErrors] = useState<FieldErrors>({});
  const box = useRef<HTMLFormElement>(null);
  const errors = { ...serverErrors(), ...ownErrors };
  const wrong = Object.keys(errors).join();
  useEffect(() => box.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [wrong]);
  const edit = (change: Partial<MonitorForm>): void => {
    setForm({ ...form, ...change });
    monitorError.value = null;
    setErrors({});
  };
  const start = (event: Event): void => {
    event.preventDefault();
    const checked = checkMonitor(form, offered);
    setErrors(checked);
    if (Object.keys(checked).length) return;
    remember(FORM_KEY, form);
    if (form.mode === 'address') remember(RECENT_KEY, withRecent(recall(RECENT_KEY), form.targets));
    choose({ params: monitorParams(form) }, 'replace');
    void startMonitor(monitorRequest(form, offered));
  };
  const onOption = (name: string, text: string): void => edit({ options: { ...form.options, [name]: text } });
  return (
    <form class="monitor-form form-rows" ref={box} noValidate onSubmit={start}>
      <div class="monitor-targets">
        <TargetFields
          form={form}
          errors={errors}
          allowed={info.allowed_targets}
          recent={withRecent(recall(RECENT_KEY), '')}
          several=""
          onChange={(change: Partial<TargetForm>) => edit(change)}
        />
      </div>
      <div class="monitor-options">
        {offered.map((option) => (
          <OptionField
            key={option.name}
            option={option}
            options={form.options}
            errors={errors}
            onOption={onOption}
          />
        ))}
      </div>
      <div class="monitor-buttons">
        <button type="submit" class="button main">
          Start
        </button>
        <span class="muted">Numbers appear while the job runs; nothing is saved.</span>
      </div>
    </form>
  );
}
