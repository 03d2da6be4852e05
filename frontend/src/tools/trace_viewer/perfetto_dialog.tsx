/** Says what opening the run in Perfetto does, before it does it. */

import type { VNode } from 'preact';
import { Dialog } from '../../widgets/dialog';
import { PERFETTO } from './perfetto';

type What = 'run' | 'window';

export function PerfettoDialog({
  onOpen,
  onSave,
  onClose,
}: {
  onOpen(what: What): void;
  onSave(what: What): void;
  onClose(): void;
}): VNode {
  const choice = (label: string, act: (what: What) => void, what: What): VNode => (
    <button
      type="button"
      class="button"
      onClick={() => {
        act(what);
        onClose();
      }}
    >
      {label}
    </button>
  );
  return (
    <Dialog title="Open in Perfetto" onClose={onClose}>
      <p>
        <b>This opens another site, {PERFETTO.replace('https://', '')}, in a new window</b> and hands it the
        trace inside this browser. Perfetto states that it reads traces in the browser and uploads nothing; it
        is not a site of this project.
      </p>
      <p class="tv-dialog-acts">
        {choice('Open the window in Perfetto', onOpen, 'window')}
        {choice('Open the whole run in Perfetto', onOpen, 'run')}
      </p>
      <p class="muted">
        Or save a file, and open it in your own copy of Perfetto with “Open trace file”. Nothing leaves this
        machine then.
      </p>
      <p class="tv-dialog-acts">
        {choice('Save this window', onSave, 'window')}
        {choice('Save the whole run', onSave, 'run')}
      </p>
    </Dialog>
  );
}
