/** Says what opening the run in Perfetto does, before it does it. */

import type { VNode } from 'preact';
import { Dialog } from '../../../widgets/dialog';
import { PERFETTO, PerfettoLink } from '../../perfetto_link';

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
        trace within this browser. According to its authors, Perfetto reads traces in the browser and uploads
        nothing. It is not part of this project.
      </p>
      <p class="tv-dialog-acts">
        {choice('Open the window in Perfetto', onOpen, 'window')}
        {choice('Open the whole run in Perfetto', onOpen, 'run')}
      </p>
      <p>
        <b>Or save a file first,</b> and open it with “Open trace file” at <PerfettoLink /> or in your own
        copy of Perfetto. This page and its server send the file nowhere.
      </p>
      <p class="tv-dialog-acts">
        {choice('Save this window', onSave, 'window')}
        {choice('Save the whole run', onSave, 'run')}
      </p>
    </Dialog>
  );
}
