/** The runs of the logdir, and the tools and hosts of the chosen run. */
import { signal } from '@preact/signals';
import { cached, fetchRuns, fetchTools, forgetAnswers, toolsUrl, type ApiError } from '../api/client';
import type { RunsAnswer, ToolsAnswer } from '../api/types';
import { asApiError, useLoaded, type Loaded } from './payload';

export const runs = signal<RunsAnswer | null>(null);
export const runsError = signal<ApiError | null>(null);

/** Requests the runs again: new ones appear; `isReload` also drops cached answers. */
export async function loadRuns(isReload = false): Promise<void> {
  if (isReload) forgetAnswers();
  try {
    runs.value = await fetchRuns();
    runsError.value = null;
  } catch (error) {
    // A list that is already loaded stays: the pages of a run work without it.
    runsError.value = asApiError(error);
  }
}

/** The run to show if the link names none: the newest that can be opened, else the newest. */
export function defaultRun(answer: RunsAnswer): string {
  return (answer.runs.find((candidate) => candidate.state === 'ok') ?? answer.runs[0])?.run ?? '';
}

export function useTools(run: string): Loaded<ToolsAnswer> {
  return useLoaded(run && toolsUrl(run), run, () => fetchTools(run), cached<ToolsAnswer>(toolsUrl(run)));
}

/** The tools with data for the run, so that nothing links to a tool without data. */
export const toolNames = signal<ReadonlySet<string>>(new Set());

export function canOpen(tool: string): boolean {
  return toolNames.value.has(tool);
}
