/** Continuous profiling: the targets that are profiled, and the outcome of the last start or stop. */
import { signal } from '@preact/signals';
import {
  fetchContinuous,
  postContinuous,
  type ContinuousOutcome,
  type ContinuousRequest,
  type ContinuousTarget,
} from '../api/capture';
import type { ApiError } from '../api/client';
import { withToken } from './capture';
import { asApiError } from './payload';

export const continuousTargets = signal<readonly ContinuousTarget[]>([]);
/** What is being asked of the targets; null: nothing. */
export const changing = signal<ContinuousRequest['action'] | null>(null);
/** The answers of the last start or stop. */
export const continuousOutcomes = signal<readonly ContinuousOutcome[]>([]);
export const continuousError = signal<ApiError | null>(null);

export async function loadContinuous(): Promise<void> {
  try {
    continuousTargets.value = (await fetchContinuous()).running;
  } catch (error) {
    continuousError.value = asApiError(error);
  }
}

export function forgetOutcomes(): void {
  continuousOutcomes.value = [];
  continuousError.value = null;
}

export async function changeContinuous(request: ContinuousRequest): Promise<void> {
  if (changing.value) return;
  forgetOutcomes();
  changing.value = request.action;
  try {
    const answer = await withToken((token) => postContinuous(token, request));
    continuousTargets.value = answer.running;
    continuousOutcomes.value = answer.targets;
  } catch (error) {
    continuousError.value = asApiError(error);
  } finally {
    changing.value = null;
  }
}
