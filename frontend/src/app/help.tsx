/** The dialog of keyboard shortcuts: the page's own, and those of the tool on screen. */
import type { VNode } from 'preact';
import { toolKeys, type KeyHelp } from '../state/keys';
import { Dialog } from '../widgets/dialog';

const PAGE_KEYS: readonly KeyHelp[] = [
  { keys: '?', does: 'Show these keys' },
  { keys: '/', does: 'Search in the table' },
  { keys: '\\', does: 'Close and open the side bar' },
  { keys: 'Tab', does: 'Next control; Enter acts, Esc closes' },
];
const TABLE_KEYS: readonly KeyHelp[] = [
  { keys: '← ↑ → ↓', does: 'Move from cell to cell' },
  { keys: 'Home End Page ↑ Page ↓', does: 'Move by a page or to the end' },
  { keys: 'Ctrl + C', does: 'Copy the exact value of the cell' },
];

function KeyList({ title, keys }: { title: string; keys: readonly KeyHelp[] }): VNode {
  return (
    <section class="key-list">
      <h3>{title}</h3>
      <dl>
        {keys.map(({ keys: names, does }) => (
          <div key={names}>
            <dt>
              <kbd>{names}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Help({ onClose }: { onClose: () => void }): VNode {
  return (
    <Dialog title="Keys" onClose={onClose}>
      {toolKeys.value.length > 0 && <KeyList title="This page" keys={toolKeys.value} />}
      <KeyList title="Everywhere" keys={PAGE_KEYS} />
      <KeyList title="In a table" keys={TABLE_KEYS} />
    </Dialog>
  );
}
