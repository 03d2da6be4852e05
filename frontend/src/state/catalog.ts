/** The runs of the logdir, and the tools and hosts of the chosen run. */
import { signal } from '@preact/signals';
import { cached, fetchRuns, fetchTools, forgetAnswers, toolsUrl, type ApiError } from '../api/client';
import type { RunsAnswer, ToolsAnswer } from '../api/types';
import { asApiError, useLoaded, type Loaded } from './payload';

export const runs = signal<RunsAnswer | null>(null);
export const runsError = signal<ApiError | null>(null);

/** Asks for the runs (again): new ones appear, other answers are forgotten when `anew`. */
export async function loadRuns(anew = false): Promise<void> {
  if (anew) forgetAnswers();
  try {
    runs.value = await fetchRuns();
    runsError.value = null;
  } catch (error) {
    // A list that is there stays: the pages of a run work without it.
    runsError.value = asApiError(error);
  }
}

/** The run to show where the link names none: the newest that can be opened, else the newest. */
export function defaultRun(answer: RunsAnswer): string {
  return (answer.runs.find((candidate) => candidate.state === 'ok') ?? answer.runs[0])?.run ?? '';
}

export function useTools(run: string): Loaded<ToolsAnswer> {
  return useLoaded(run && toolsUrl(run), run, () => fetchTools(run), cached<ToolsAnswer>(toolsUrl(run)));
}

/** The tools that have something to show for the run, so that nothing links to one that has not. */
export const toolNames = signal<ReadonlySet<string>>(new Set());

export function canOpen(tool: string): boolean {
  return toolNames.value.has(tool);
}
