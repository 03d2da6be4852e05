/** Parts of a form: a field with its label, help and error; a choice of one of a few, side by side. */
import type { ComponentChildren, JSX, VNode } from 'preact';
import { useId } from 'preact/hooks';
import { RichText } from './rich_text';
import './form.css';

export interface FieldProps {
  label: string;
  /** How a form finds the field, to focus it when it is invalid. */
  name: string;
  value: string;
  onValue: (value: string) => void;
  help?: string | undefined;
  error?: string | undefined;
  unit?: string | undefined;
  placeholder?: string | undefined;
  isNumber?: boolean;
  isFirst?: boolean;
  /** One value per line. */
  hasLines?: boolean;
  children?: ComponentChildren;
}

/** Help and error of a field, with the ids that link them to it. */
function Words({
  id,
  help,
  error,
}: {
  id: string;
  help: string | undefined;
  error: string | undefined;
}): VNode {
  return (
    <>
      {error && (
        <p id={`${id}-error`} class="field-error">
          <span aria-hidden="true">✕ </span>
          <RichText text={error} />
        </p>
      )}
      {help && (
        <p id={`${id}-help`} class="field-help">
          <RichText text={help} />
        </p>
      )}
    </>
  );
}

function described(id: string, help: string | undefined, error: string | undefined): string | undefined {
  return [error && `${id}-error`, help && `${id}-help`].filter(Boolean).join(' ') || undefined;
}

export function Field({
  label,
  name,
  value,
  onValue,
  help,
  error,
  unit,
  placeholder,
  isNumber = false,
  isFirst = false,
  hasLines = false,
  children,
}: FieldProps): VNode {
  const id = useId();
  const inputProps: JSX.InputHTMLAttributes<HTMLInputElement> = isNumber
    ? { inputMode: 'decimal', class: 'field number' }
    : { class: 'field' };
  const shared = {
    id,
    name,
    value,
    placeholder,
    spellcheck: false,
    'aria-invalid': error ? ('true' as const) : undefined,
    'aria-describedby': described(id, help, error),
  };
  return (
    <div class="form-field">
      <label class="field-label" for={id}>
        {label}
      </label>
      <span class="field-row">
        {hasLines ? (
          <textarea
            {...shared}
            class="field lines"
            rows={3}
            onInput={(event) => onValue(event.currentTarget.value)}
          />
        ) : (
          <input
            {...shared}
            {...inputProps}
            type="text"
            autocomplete="off"
            autofocus={isFirst}
            onInput={(event) => onValue(event.currentTarget.value)}
          />
        )}
        {unit && <span class="muted">{unit}</span>}
      </span>
      <Words id={id} help={help} error={error} />
      {children}
    </div>
  );
}

interface Choice {
  value: string;
  title: string;
}

export interface ChoicesProps extends Omit<
  FieldProps,
  'unit' | 'placeholder' | 'isNumber' | 'isFirst' | 'hasLines' | 'children'
> {
  choices: readonly Choice[];
  /** Details of the label, in a tooltip. */
  tip?: string | undefined;
}

/** One of a few, all visible: radio buttons that look like one bar. */
export function Choices({ label, name, value, onValue, choices, help, error, tip }: ChoicesProps): VNode {
  const id = useId();
  return (
    <div
      class="form-field"
      role="radiogroup"
      aria-labelledby={`${id}-label`}
      aria-describedby={described(id, help, error)}
    >
      <span id={`${id}-label`} class="field-label" data-tip={tip}>
        {label}
      </span>
      <div class="form-segments">
        {choices.map((choice) => (
          <label key={choice.value}>
            <input
              type="radio"
              class="hidden-text"
              name={name}
              value={choice.value}
              checked={choice.value === value}
              onChange={() => onValue(choice.value)}
            />
            <span>{choice.title}</span>
          </label>
        ))}
      </div>
      <Words id={id} help={help} error={error} />
    </div>
  );
}
