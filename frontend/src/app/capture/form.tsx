/** The form of a capture: targets, duration, level of detail, and the options that few need. Enter starts. */
import { effect } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { CaptureInfo, CaptureOption } from '../../api/capture';
import type { ApiError } from '../../api/client';
import { recall, RECENT_KEY, remember } from '../../base/storage';
import {
  capture,
  captureInfo,
  followCapture,
  isStarting,
  startCapture,
  startError,
} from '../../state/capture';
import {
  changeContinuous,
  changing,
  continuousError,
  continuousTargets,
  forgetOutcomes,
} from '../../state/continuous';
import { Choices, Field } from '../../widgets/form';
import { RichText } from '../../widgets/rich_text';
import { ContinuousFoot, ContinuousPart } from './continuous';
import {
  captureRequest,
  changedOptions,
  checkForm,
  continuousRequest,
  restoreForm,
  runningTargets,
  splitTargets,
  withoutRunName,
  withRecent,
  type CaptureForm,
  type FieldErrors,
} from './model';
import { OptionField } from './option_fields';
import { TargetFields } from './target_fields';

const FORM_KEY = 'tpuprof.capture';
const DURATION = 'duration_ms';
const WORKERS = 'workers_list';

/** Kept while the page lives, so that a reopened dialog shows what was typed. */
let keptForm: CaptureForm | null = null;

// A run name is used once: the next capture begins without it.
effect(() => {
  if (capture.value?.state === 'done' && keptForm)
    keptForm = { ...keptForm, options: withoutRunName(keptForm.options) };
});

/** The form's next contents: "Try the failed ones again". */
export function refill(change: Partial<CaptureForm>): void {
  if (keptForm) keptForm = { ...keptForm, ...change };
}

/** Starts the capture with the values that passed the last check. */
export function startAgain(info: CaptureInfo): void {
  if (keptForm) void startCapture(captureRequest(keptForm, info, continuousTargets.value));
}

function recentTargets(): string[] {
  return withRecent(recall(RECENT_KEY), '');
}

function memorize(form: CaptureForm, info: CaptureInfo): void {
  remember(FORM_KEY, {
    ...form,
    options: changedOptions(form.options, info.options),
    continuous: changedOptions(form.continuous, info.continuous_options),
  });
  if (form.mode === 'address') remember(RECENT_KEY, withRecent(recall(RECENT_KEY), form.targets));
}

function serverErrors(error: ApiError | null, info: CaptureInfo): FieldErrors {
  const fields = [
    'targets',
    'tpu',
    'tpu_zone',
    'gcp_project',
    WORKERS,
    'logdir',
    ...[...info.options, ...info.continuous_options].map(({ name }) => name),
  ];
  return error && fields.includes(error.parameter)
    ? { [error.parameter]: [error.message, error.remedy].filter(Boolean).join(' ') }
    : {};
}

function Refused({ error, info }: { error: ApiError; info: CaptureInfo }): VNode {
  const other = error.status === 409 ? info.running : null;
  return (
    <div class="message failed" role="alert">
      <p>
        <b>
          <RichText text={error.message} />
        </b>{' '}
        <RichText text={error.remedy} />
      </p>
      {other && (
        <button type="button" class="button small" onClick={() => void followCapture(other)}>
          Show the running capture
        </button>
      )}
    </div>
  );
}

interface PartProps {
  form: CaptureForm;
  errors: FieldErrors;
  info: CaptureInfo;
  onOption: (name: string, text: string) => void;
  onChange: (change: Partial<CaptureForm>) => void;
}

/** Open if a field in it is invalid or differs from its default. */
function More({
  form,
  errors,
  info,
  rest,
  onOption,
  onChange,
}: PartProps & { rest: readonly CaptureOption[] }): VNode {
  const isWrong = [...rest.map(({ name }) => name), 'logdir', WORKERS].some((name) => errors[name]);
  const isChanged = Object.keys(changedOptions(form.options, rest)).length > 0 || form.workers_list !== '';
  const [isOpen, setOpen] = useState(isChanged);
  const logdirs = info.logdirs.map(({ name, path }) => ({ value: name, title: name || path }));
  return (
    <details class="more" open={isOpen || isWrong} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {[...rest.map(({ title }) => title), ...(logdirs.length > 1 ? ['Save in'] : []), 'Workers'].join(
          ', ',
        )}
      </summary>
      <div class="more-fields">
        {rest.map((option) => (
          <OptionField
            key={option.name}
            option={option}
            options={form.options}
            errors={errors}
            onOption={onOption}
          />
        ))}
        {info.logdirs.length > 1 && (
          <Choices
            label="Save in"
            name="logdir"
            value={form.logdir}
            choices={logdirs}
            error={errors['logdir']}
            onValue={(logdir) => onChange({ logdir })}
          />
        )}
        <Field
          label="Workers"
          name={WORKERS}
          value={form.workers_list}
          onValue={(text) => onChange({ workers_list: text })}
          placeholder="empty: each target separately"
          help={
            'For old Cloud TPU pods: the first target profiles these workers, and they write the files ' +
            'themselves, so the log directory must be reachable from them (`gs://`).'
          }
          error={errors[WORKERS]}
        />
      </div>
    </details>
  );
}

function useForm(info: CaptureInfo): [CaptureForm, (change: Partial<CaptureForm>) => void] {
  const [form, setForm] = useState<CaptureForm>(() => keptForm ?? restoreForm(recall(FORM_KEY), info));
  keptForm = form;
  return [form, (change) => setForm((old) => ({ ...old, ...change }))];
}

/** The options of one profile. */
function Once(part: PartProps): VNode {
  const { form, errors, info, onOption } = part;
  const duration = info.options.filter(({ name }) => name === DURATION);
  const levels = info.options.filter(({ kind }) => kind === 'choice');
  const rest = info.options.filter(({ name, kind }) => name !== DURATION && kind !== 'choice');
  return (
    <>
      {[...duration, ...levels].map((option) => (
        <OptionField
          key={option.name}
          option={option}
          options={form.options}
          errors={errors}
          onOption={onOption}
        />
      ))}
      <More {...part} rest={rest} />
    </>
  );
}

const WAYS = [
  { value: 'once', title: 'Once' },
  { value: 'continuous', title: 'Continuously' },
];

/** One profile, or continuous profiling with snapshots. */
function Way({ form, onChange }: Pick<PartProps, 'form' | 'onChange'>): VNode {
  return (
    <Choices
      label="Profile"
      name="way"
      value={form.isContinuous ? 'continuous' : 'once'}
      choices={WAYS}
      tip="Once: for a set time. Continuously: from now on; save what was recorded whenever you need it."
      onValue={(way) => onChange({ isContinuous: way === 'continuous' })}
    />
  );
}

export function CaptureFormView({ info }: { info: CaptureInfo }): VNode {
  const [form, change] = useForm(info);
  const [ownErrors, setErrors] = useState<FieldErrors>({});
  const box = useRef<HTMLFormElement>(null);
  const refused = startError.value;
  const errors = {
    ...serverErrors(refused, info),
    ...serverErrors(continuousError.value, info),
    ...ownErrors,
  };
  const wrong = Object.keys(errors).join();
  // Focuses the first invalid field when the user starts, not while they type.
  useEffect(() => box.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [wrong]);
  useEffect(() => box.current?.querySelector<HTMLElement>('[name=targets], [name=tpu]')?.focus(), []);
  const edit = (part: Partial<CaptureForm>, names: readonly string[]): void => {
    change(part);
    startError.value = null;
    forgetOutcomes();
    setErrors((old) => Object.fromEntries(Object.entries(old).filter(([name]) => !names.includes(name))));
  };
  const whenValid = (act: () => void): void => {
    const checked = checkForm(form, info);
    setErrors(checked);
    if (Object.keys(checked).length) return;
    memorize(form, info);
    act();
  };
  const changeTo = (action: 'start' | 'stop'): void =>
    whenValid(() => void changeContinuous(continuousRequest(action, form, info)));
  const start = (event: Event): void => {
    event.preventDefault();
    if (changing.value) return;
    if (form.isContinuous && !runningTargets(form, continuousTargets.value).length) changeTo('start');
    else whenValid(() => void startCapture(captureRequest(form, info, continuousTargets.value)));
  };
  const onOption = (name: string, text: string): void =>
    edit({ options: { ...form.options, [name]: text } }, [name]);
  const onChange = (part: Partial<CaptureForm>): void => edit(part, Object.keys(part));
  const part = { form, errors, info, onOption, onChange };
  const n = form.mode === 'address' ? splitTargets(form.targets).length : 0;
  return (
    <form class="capture-form form-rows" ref={box} noValidate onSubmit={start}>
      {refused && !Object.keys(serverErrors(refused, info)).length && (
        <Refused error={refused} info={captureInfo.value ?? info} />
      )}
      <TargetFields
        form={form}
        errors={errors}
        allowed={info.allowed_targets}
        recent={recentTargets()}
        several=" (they become one run)"
        onChange={onChange}
      />
      <Way form={form} onChange={onChange} />
      {form.isContinuous ? <ContinuousPart {...part} /> : <Once {...part} />}
      {form.isContinuous ? (
        <ContinuousFoot form={form} n={n} onStart={() => changeTo('start')} onStop={() => changeTo('stop')} />
      ) : (
        <footer class="dialog-foot">
          <button type="submit" class="button main" disabled={isStarting.value}>
            {isStarting.value ? 'Starting…' : n > 1 ? `Capture ${n} targets` : 'Capture'}
          </button>
          {capture.value === null && <span class="muted">The job keeps running while it is profiled.</span>}
        </footer>
      )}
    </form>
  );
}
