/** The options of a capture as the server describes them: numbers, texts and choices, each with its cost. */
import type { VNode } from 'preact';
import type { CaptureOption } from '../../api/capture';
import { Choices, Field } from '../../widgets/form';
import { optionText, type CaptureForm, type FieldErrors } from './model';
import { durationText } from './progress_model';

export interface OptionFieldProps {
  option: CaptureOption;
  options: CaptureForm['options'];
  errors: FieldErrors;
  onOption: (name: string, text: string) => void;
}

/** "ms", and from one second on also "= 1.5 s". */
function unitText({ unit }: CaptureOption, text: string): string {
  const value = Number(text);
  return unit === 'ms' && value >= 1000 && Number.isFinite(value) ? `ms = ${durationText(value)}` : unit;
}

export function OptionField({ option, options, errors, onOption }: OptionFieldProps): VNode {
  const text = optionText(option, options);
  const shared = {
    label: option.title,
    name: option.name,
    value: text,
    error: errors[option.name],
    onValue: (value: string) => onOption(option.name, value),
  };
  if (option.kind === 'choice') {
    const chosen = option.choices.find(({ value }) => String(value) === text);
    return (
      <Choices
        {...shared}
        choices={option.choices.map(({ value, title }) => ({ value: String(value), title }))}
        help={chosen?.cost || option.help}
        tip={option.help}
      />
    );
  }
  return (
    <Field
      {...shared}
      help={option.help}
      unit={unitText(option, text)}
      placeholder={option.placeholder || undefined}
      isNumber={option.kind === 'int' || option.kind === 'float'}
      hasLines={option.kind === 'lines'}
    />
  );
}
