import { describe, expect, it } from 'vitest';
import { parseView, rowFinder, toCsv } from '../../widgets/table/model';
import { OVERVIEW_PAGE } from '../../api/tables/overview_page';
import type { Table } from '../../api/types';
import { answerOf, payloadOf } from '../testing';
import {
  calmText,
  captureText,
  causesOf,
  FINDING_COLUMNS,
  findingsData,
  findingsOf,
  gainText,
  HIDDEN_COLUMNS,
  openRow,
} from './findings_model';
import { stepChoices } from './model';

const plain = (text: string): string => text.replaceAll('\u00a0', ' ');

const PAYLOAD = answerOf(OVERVIEW_PAGE.page, {
  findings: {
    cause: ['Input', 'Not recorded'],
    color: ['input', 'other'],
    finding: ['Each step waits 3.00 ms for data in `make_batch`.', '3.34 ms was not recorded.'],
    reason: ['Late.', ''],
    culprit: ['make_batch', ''],
    host: ['', 'worker-1'],
    time_ps: [3e9, 3.34e9],
    share: [0.37, 0.4],
    gain_low_ps: [2.4e9, null],
    gain_high_ps: [3e9, null],
    fix: ['Prepare batches ahead.', 'Capture with `python_tracer_level=1`.'],
    snippet: ['batch = ready.get()', ''],
    confidence: ['high', 'low'],
    capture_option: ['with_stack=True', 'python_tracer_level=1'],
    docs: ['causes/input', 'causes/not_recorded'],
    meaning: ['Steps wait for their next batch.', 'The trace does not show it.'],
    evidence: ['The longest wait', 'The longest'],
    evidence_host: ['worker-0', ''],
    evidence_start_ps: [7e9, null],
    evidence_end_ps: [9e9, null],
  },
});
const TABLE = PAYLOAD.tables['findings'] as Table;

describe('findings', () => {
  const findings = findingsOf(PAYLOAD);
  const data = findingsData(TABLE, findings);
  const column = (name: string) => data.columns.find((one) => one.name === name);

  it('leads from the evidence to its place on the timeline, where it has one', () => {
    expect(findings[0]?.place).toEqual({ hosts: 'worker-0', start_ps: '7000000000', end_ps: '9000000000' });
    expect(findings[1]?.place).toBeNull();
  });

  it.each([
    [9.9e9, 19.9e9, '9.90 to 19.9 ms'],
    [0.4e9, 1.2e9, '0.400 to 1.20 ms'],
    [3e9, 3e9, '3.00 ms'],
    [0, 3e9, 'up to 3.00 ms'],
    [null, null, '—'],
  ])('formats the gain from %s to %s', (low, high, text) => expect(plain(gainText(low, high))).toBe(text));

  it('shows five columns, sorts by the gain, and exports names without backticks', () => {
    expect(data.columns.filter(({ name }) => !HIDDEN_COLUMNS.has(name)).map(({ name }) => name)).toEqual(
      FINDING_COLUMNS,
    );
    expect([...rowFinder(data)(parseView({ sort: '-gain_ps' }))]).toEqual([0, 1]);
    expect([...rowFinder(data)(parseView({ q: 'make_batch' }))]).toEqual([0]);
    expect([...rowFinder(data)(parseView({ 'f.gain_ps': '> 1 ms' }))]).toEqual([0]);
    const exported = toCsv(
      data.columns.filter(({ name }) => !HIDDEN_COLUMNS.has(name)),
      [0],
    ).split('\r\n');
    expect(exported.slice(0, 2)).toEqual([
      'cause,finding,share,gain_ps,confidence',
      'Input,Each step waits 3.00 ms for data in make_batch.,0.37,2700000000,high',
    ]);
  });

  it('says what a cause and a confidence mean', () => {
    expect(column('cause')?.tip?.(0)).toBe('Steps wait for their next batch.');
    expect(column('confidence')?.tip?.(1)).toContain('Only the gap is known');
    expect(column('gain_ps')?.tip?.(1)).toContain('No model');
  });

  it('names the capture option once', () => {
    expect(findings.map(captureText)).toEqual([
      'Capture with `with_stack=True` to see which function it is.',
      '',
    ]);
  });

  it('explains an empty list', () => {
    const causes = (share: number) =>
      causesOf(
        answerOf(OVERVIEW_PAGE.page, {
          causes: { cause: ['Compute', 'Dispatch'], time_ps: [9e9, 1e9], share: [0.9, share] },
        }),
      );
    expect(plain(calmText(causes(0.029)))).toBe(
      'No cause other than computing takes 3% or more of the step.',
    );
    expect(plain(calmText(causes(0.05)))).toBe(
      'No function, operation or stage stands out. Apart from computing, most time goes into dispatch: ' +
        '5.00% of the step.',
    );
    expect(calmText([])).toContain('No cause other than computing');
  });

  it('opens the row of the link, if it is there', () => {
    expect([undefined, '1', '2', '3', '0', 'x'].map((text) => openRow(text, 2))).toEqual([
      -1, 0, 1, -1, -1, -1,
    ]);
  });

  it('lists each cause with its time, share and meaning', () => {
    const causes = causesOf(
      answerOf(OVERVIEW_PAGE.page, {
        causes: {
          cause: ['Compute', 'Callbacks'],
          color: ['compute', 'callback'],
          meaning: ['', 'Calls back.'],
          time_ps: [4.86e9, 1e9],
          share: [0.6, 0.1],
        },
      }),
    );
    expect(causes.map(({ title, token, fraction }) => [title, token, fraction])).toEqual([
      ['Compute', '--c-compute', 0.6],
      ['Callbacks', '--q-6', 0.1],
    ]);
    expect(causes.map(({ tip }) => plain(tip))).toEqual([
      'Compute: 4.86 ms per step, 60.0%',
      'Callbacks: 1.00 ms per step, 10.0%\nCalls back.',
    ]);
    expect(causesOf(payloadOf())).toEqual([]);
  });
});

describe('the list of steps to explain', () => {
  const steps = answerOf(OVERVIEW_PAGE.page, {
    steps: {
      step: Array.from({ length: 20 }, (_, i) => `train ${i}`),
      step_time_ps: Array.from({ length: 20 }, (_, i) => (i === 7 ? 99e9 : (20 + i) * 1e9)),
    },
  });

  it('begins with the slowest', () => {
    const choices = stepChoices(steps, -1);
    expect(choices).toHaveLength(12);
    expect(choices.slice(0, 3).map(({ name }) => name)).toEqual(['train 7', 'train 19', 'train 18']);
  });

  it('has the chosen one too', () => {
    expect(stepChoices(steps, 2).at(-1)).toEqual({ name: 'train 2', timePs: 22e9 });
    expect(stepChoices(steps, 7)).toHaveLength(12);
  });
});
