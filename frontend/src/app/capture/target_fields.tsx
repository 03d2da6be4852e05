/** The targets: addresses, or names of Cloud TPUs. Shared by the dialog and the monitor. */
import type { VNode } from 'preact';
import { Choices, Field } from '../../widgets/form';
import { splitTargets, type FieldErrors, type TargetForm } from './model';

export interface TargetFieldsProps {
  form: TargetForm;
  errors: FieldErrors;
  allowed: readonly string[];
  recent: readonly string[];
  /** What several targets result in. */
  several: string;
  onChange: (change: Partial<TargetForm>) => void;
}

const MODES = [
  { value: 'address', title: 'Addresses' },
  { value: 'tpu', title: 'Cloud TPU names' },
];

function Recent({
  recent,
  targets,
  onPick,
}: {
  recent: readonly string[];
  targets: string;
  onPick: (text: string) => void;
}): VNode | null {
  const otherTargets = recent.filter((text) => text !== splitTargets(targets).join(', ')).slice(0, 4);
  if (!otherTargets.length) return null;
  return (
    <p class="recent">
      <span class="muted">Recent:</span>
      {otherTargets.map((text) => (
        <button key={text} type="button" class="text-link" data-tip={text} onClick={() => onPick(text)}>
          {text}
        </button>
      ))}
    </p>
  );
}

function Addresses({ form, errors, allowed, recent, several, onChange }: TargetFieldsProps): VNode {
  const limit = allowed.length
    ? ` This server allows: ${allowed.map((pattern) => `\`${pattern}\``).join(', ')}.`
    : '';
  return (
    <Field
      label="Targets"
      name="targets"
      value={form.targets}
      onValue={(targets) => onChange({ targets })}
      placeholder="localhost:9012, worker-1:9012"
      help={
        "Address of the job's profiler server, `host:port`; " +
        `separate several with commas${several}.${limit}`
      }
      error={errors['targets']}
      isFirst
    >
      <Recent recent={recent} targets={form.targets} onPick={(targets) => onChange({ targets })} />
    </Field>
  );
}

function TpuNames({ form, errors, onChange }: TargetFieldsProps): VNode {
  return (
    <>
      <Field
        label="TPU names"
        name="tpu"
        value={form.tpu}
        onValue={(tpu) => onChange({ tpu })}
        placeholder="my-tpu"
        help={
          'All workers of the TPU are profiled together. This server queries the Cloud TPU API with its ' +
          'own Google credentials.'
        }
        error={errors['tpu']}
        isFirst
      />
      <Field
        label="Zone"
        name="tpu_zone"
        value={form.tpu_zone}
        onValue={(text) => onChange({ tpu_zone: text })}
        placeholder="us-central2-b; empty: the server's default"
        error={errors['tpu_zone']}
      />
      <Field
        label="Project"
        name="gcp_project"
        value={form.gcp_project}
        onValue={(text) => onChange({ gcp_project: text })}
        placeholder="empty: the project of the credentials"
        error={errors['gcp_project']}
      />
    </>
  );
}

export function TargetFields(props: TargetFieldsProps): VNode {
  const { form, onChange } = props;
  return (
    <>
      <Choices
        label="Find job by"
        name="mode"
        value={form.mode}
        choices={MODES}
        onValue={(mode) => onChange({ mode: mode === 'tpu' ? 'tpu' : 'address' })}
      />
      {form.mode === 'tpu' ? <TpuNames {...props} /> : <Addresses {...props} />}
    </>
  );
}
