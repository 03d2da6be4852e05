/** The dialog's fields, checked and turned into a request; and what the browser remembers of them. Pure. */
import type {
  CaptureInfo,
  CaptureOption,
  CaptureRequest,
  ContinuousRequest,
  ContinuousTarget,
  TargetsRequest,
} from '../../api/capture';

type Mode = 'address' | 'tpu';

/** The targets, as typed. */
export interface TargetForm {
  mode: Mode;
  targets: string;
  tpu: string;
  tpu_zone: string;
  gcp_project: string;
  workers_list: string;
}

export interface CaptureForm extends TargetForm {
  logdir: string;
  /** Options as typed, by name; missing ones have the default. */
  options: Readonly<Record<string, string>>;
  isContinuous: boolean;
  /** Options of continuous profiling as typed. */
  continuous: Readonly<Record<string, string>>;
}

/** Error messages by the name of the field. */
export type FieldErrors = Readonly<Record<string, string>>;

export const NO_TARGETS: TargetForm = {
  mode: 'address',
  targets: '',
  tpu: '',
  tpu_zone: '',
  gcp_project: '',
  workers_list: '',
};
const MANY_RECENT = 6;

/** "grpc://a:1, b:2" as ["a:1", "b:2"]: parsed as the server does, without the scheme unless it asks for TLS. */
export function splitTargets(text: string): string[] {
  return text
    .split(/[\s,;]+/)
    .map((part) => part.replace(/^grpc:\/\//i, '').replace(/\/+$/, ''))
    .filter(Boolean);
}

function targetError(target: string): string {
  const parts = /^(?:grpcs:\/\/)?(\[[0-9a-f:.%]+\]|[^\s:/[\]]+)(?::(\d+))?$/i.exec(target);
  if (!parts)
    return /^[0-9a-f:]+:[0-9a-f:]*$/i.test(target)
      ? `"${target}": write an IPv6 address in brackets, [::1]:9012.`
      : `"${target}" is not host:port.`;
  if (parts[2] === undefined)
    return `"${target}" needs a port: the profiler server's port, as in ${target}:9012.`;
  const port = Number(parts[2]);
  return port >= 1 && port <= 65535 ? '' : `"${target}": a port is a number from 1 to 65535.`;
}

function addressErrors(text: string): string {
  const targets = splitTargets(text);
  if (!targets.length) return "Enter host:port of the job's profiler server; separate several with commas.";
  const wrong = targets.map(targetError).find(Boolean);
  if (wrong) return wrong;
  const addresses = targets.map((target) => target.replace(/^grpcs:\/\//i, ''));
  const twice = addresses.find((address, i) => addresses.indexOf(address) < i);
  return twice ? `"${twice}" is listed twice.` : '';
}

export function checkTargets(form: TargetForm): FieldErrors {
  if (form.mode === 'tpu')
    return form.tpu.trim() ? {} : { tpu: 'Enter the name of a Cloud TPU; separate several with commas.' };
  const error = addressErrors(form.targets);
  return error ? { targets: error } : {};
}

/** The value of an option as typed; null: not a number. */
function numberOf(text: string): number | null {
  const value = Number(text.trim());
  return text.trim() === '' || !Number.isFinite(value) ? null : value;
}

function rangeText({ min, max, unit }: CaptureOption): string {
  const [least, most] = [min, max].map((end) => end?.toLocaleString('en-US'));
  const ends =
    least && most ? `${least} to ${most}` : least ? `${least} or more` : most ? `at most ${most}` : '';
  return [ends, ends && unit].filter(Boolean).join(' ');
}

export function optionError(option: CaptureOption, text: string): string {
  if (isText(option)) return '';
  if (option.kind === 'choice')
    return option.choices.some(({ value }) => String(value) === text) ? '' : 'Choose one of these.';
  const value = numberOf(text);
  const range = rangeText(option);
  const message = `${option.kind === 'int' ? 'A whole number' : 'A number'}${range ? `, ${range}` : ''}.`;
  if (value === null || (option.kind === 'int' && !Number.isInteger(value))) return message;
  const isOutside =
    (option.min !== null && value < option.min) || (option.max !== null && value > option.max);
  return isOutside ? message : '';
}

export function optionText(option: CaptureOption, options: CaptureForm['options']): string {
  return options[option.name] ?? String(option.default);
}

export function checkOptions(
  options: CaptureForm['options'],
  offered: readonly CaptureOption[],
): FieldErrors {
  const errors: Record<string, string> = {};
  for (const option of offered) {
    const error = optionError(option, optionText(option, options));
    if (error) errors[option.name] = error;
  }
  return errors;
}

export function checkForm(form: CaptureForm, info: CaptureInfo): FieldErrors {
  const options = form.isContinuous
    ? checkOptions(form.continuous, info.continuous_options)
    : checkOptions(form.options, info.options);
  return { ...checkTargets(form), ...options };
}

export function targetsRequest(form: TargetForm): TargetsRequest {
  const targetFields =
    form.mode === 'address'
      ? { targets: splitTargets(form.targets).join(',') }
      : { tpu: form.tpu, tpu_zone: form.tpu_zone, gcp_project: form.gcp_project };
  const fields = { ...targetFields, workers_list: splitTargets(form.workers_list).join(',') };
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, text]) => (text.trim() ? [[name, text.trim()]] : [])),
  );
}

function isText({ kind }: CaptureOption): boolean {
  return kind === 'text' || kind === 'lines';
}

/** All options as the server takes them, so that its defaults and the dialog's cannot differ. */
export function optionValues(
  options: CaptureForm['options'],
  offered: readonly CaptureOption[],
): Record<string, number | string> {
  const values: Record<string, number | string> = {};
  for (const option of offered) {
    const text = optionText(option, options);
    const choice = option.choices.find(({ value }) => String(value) === text);
    values[option.name] = isText(option) ? text.trim() : (choice?.value ?? Number(text));
  }
  return values;
}

/** The options that a snapshot takes; what is recorded was chosen at the start. */
export const SNAPSHOT_OPTIONS: readonly string[] = ['run_name', 'override_hostnames', 'timeout_s'];

/** One profile; in the other mode, a snapshot of those targets that run, as far as is known. */
export function captureRequest(
  form: CaptureForm,
  info: CaptureInfo,
  running: readonly ContinuousTarget[] = [],
): CaptureRequest {
  const logdir = info.logdirs.length > 1 ? { logdir: form.logdir } : {};
  if (form.isContinuous) {
    // What the last start or stop has shown not to run has nothing to save.
    const targets = runningTargets(form, running).map(({ target }) => target);
    const some = form.mode === 'address' && targets.length ? { targets: targets.join(', ') } : {};
    const taken = info.options.filter(({ name }) => SNAPSHOT_OPTIONS.includes(name));
    const options = optionValues(form.options, taken);
    const asked = targetsRequest({ ...form, ...some, workers_list: '' });
    return { ...asked, ...logdir, options, is_snapshot: true };
  }
  return { ...targetsRequest(form), ...logdir, options: optionValues(form.options, info.options) };
}

export function continuousRequest(
  action: ContinuousRequest['action'],
  form: CaptureForm,
  info: CaptureInfo,
): ContinuousRequest {
  const options = action === 'start' ? optionValues(form.continuous, info.continuous_options) : {};
  return { action, ...targetsRequest({ ...form, workers_list: '' }), options };
}

/** Those of the typed targets that are profiled continuously; of TPU names, all that are. */
export function runningTargets(form: TargetForm, running: readonly ContinuousTarget[]): ContinuousTarget[] {
  const typed = new Set(splitTargets(form.targets).map((target) => target.toLowerCase()));
  return running.filter(({ target }) => form.mode === 'tpu' || typed.has(target));
}

/**
 * Options that differ from their defaults: only these are remembered, so that a better default reaches
 * everybody.
 */
export function changedOptions(
  options: CaptureForm['options'],
  offered: readonly CaptureOption[],
): Record<string, string> {
  const changed = offered.filter(
    (option) => option.name in options && options[option.name] !== String(option.default),
  );
  return Object.fromEntries(changed.map((option) => [option.name, options[option.name] as string]));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A form from what was remembered; invalid values are left out. */
export function restoreTargets(remembered: unknown, defaultTargets: string): TargetForm {
  const stored = (typeof remembered === 'object' && remembered ? remembered : {}) as Record<string, unknown>;
  return {
    mode: stored['mode'] === 'tpu' ? 'tpu' : 'address',
    targets: textOf(stored['targets']) || defaultTargets,
    tpu: textOf(stored['tpu']),
    tpu_zone: textOf(stored['tpu_zone']),
    gcp_project: textOf(stored['gcp_project']),
    workers_list: textOf(stored['workers_list']),
  };
}

/** A run name belongs to one run: it is not remembered. */
const NOT_KEPT = 'run_name';

export function withoutRunName(options: CaptureForm['options']): Record<string, string> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name !== NOT_KEPT));
}

function restoreOptions(stored: unknown, offered: readonly CaptureOption[]): Record<string, string> {
  const old = (typeof stored === 'object' && stored ? stored : {}) as Record<string, unknown>;
  const options: Record<string, string> = {};
  for (const option of offered) {
    const text = old[option.name];
    if (option.name !== NOT_KEPT && typeof text === 'string' && !optionError(option, text))
      options[option.name] = text;
  }
  return options;
}

export function restoreForm(remembered: unknown, info: CaptureInfo): CaptureForm {
  const stored = (typeof remembered === 'object' && remembered ? remembered : {}) as Record<string, unknown>;
  const logdir = textOf(stored['logdir']);
  return {
    ...restoreTargets(stored, info.default_targets),
    logdir: info.logdirs.some(({ name }) => name === logdir) ? logdir : (info.logdirs[0]?.name ?? ''),
    options: restoreOptions(stored['options'], info.options),
    isContinuous: stored['isContinuous'] === true,
    continuous: restoreOptions(stored['continuous'], info.continuous_options),
  };
}

/** The last targets, newest first, without the current one. */
export function withRecent(recent: unknown, targets: string): string[] {
  const old = Array.isArray(recent) ? recent.filter((one): one is string => typeof one === 'string') : [];
  const text = splitTargets(targets).join(', ');
  return [text, ...old.filter((one) => one !== text)].filter(Boolean).slice(0, MANY_RECENT);
}
