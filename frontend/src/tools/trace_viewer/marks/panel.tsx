/** The marks in the drawer: a list to name, annotate, visit and delete them, and the comparison of two. */

import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { exactText, format } from '../../../base/units';
import { ComparePanel } from './compare';
import { Icon } from '../../../widgets/icons';
import { goToMark, keepMark } from '../state/keeping';
import { isInstant, letterOf, MOST_MARKS, MOST_NAME, MOST_NOTE, type Mark } from '../state/marks';
import { tokenOf } from './row';
import type { Timeline } from '../state/timeline';

function MarkLine({ timeline, mark, index }: { timeline: Timeline; mark: Mark; index: number }): VNode {
  const { marks } = timeline;
  const field = useRef<HTMLInputElement>(null);
  const isNaming = marks.naming.value === index;
  useEffect(() => {
    if (!isNaming) return;
    field.current?.focus();
    field.current?.select();
  }, [isNaming]);
  const letter = letterOf(index);
  const lengthPs = mark.endPs - mark.startPs;
  const leave = (event: KeyboardEvent & { readonly currentTarget: HTMLInputElement }): void => {
    if (event.key !== 'Enter' && event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    event.currentTarget.blur();
  };
  return (
    <li>
      <button
        type="button"
        class="tv-letter"
        style={{ '--mark': tokenOf(index) }}
        aria-label={`Go to mark ${letter}`}
        data-tip={`Go to mark ${letter}`}
        onClick={() => {
          goToMark(timeline, mark);
        }}
      >
        {letter}
      </button>
      <input
        ref={field}
        class="field tv-mark-name"
        aria-label={`Name of mark ${letter}`}
        placeholder="Name"
        maxLength={MOST_NAME}
        value={mark.name}
        onInput={(event) => {
          marks.change(index, { name: event.currentTarget.value });
        }}
        onBlur={() => {
          if (marks.naming.value === index) marks.naming.value = null;
        }}
        onKeyDown={leave}
      />
      <input
        class="field"
        aria-label={`Note on mark ${letter}`}
        placeholder="Note"
        maxLength={MOST_NOTE}
        value={mark.note}
        onInput={(event) => {
          marks.change(index, { note: event.currentTarget.value });
        }}
        onKeyDown={leave}
      />
      <span
        class="muted tv-mark-place"
        title={
          isInstant(mark)
            ? exactText(mark.startPs, 'ps')
            : `${exactText(lengthPs, 'ps')} at ${exactText(mark.startPs, 'ps')}`
        }
      >
        {isInstant(mark) ? '' : `${format(lengthPs, 'ps')} `}
        at {format(mark.startPs, 'ps')}
      </span>
      <button
        type="button"
        class="tv-close"
        aria-label={`Delete mark ${letter}`}
        data-tip={`Delete mark ${letter}`}
        onClick={() => {
          marks.remove(index);
        }}
      >
        <Icon name="hide" />
      </button>
    </li>
  );
}

export function MarksPanel({ timeline, scope }: { timeline: Timeline; scope: string }): VNode {
  const { marks } = timeline;
  const list = marks.list.value;
  const isFull = list.length >= MOST_MARKS;
  return (
    <div class="tv-drawer-body tv-marks-panel">
      <section aria-label="Marks">
        {list.length === 0 && (
          <p class="muted">
            No marks yet. M keeps the marked interval, else the selected event, else the window.
          </p>
        )}
        <ul>
          {list.map((mark, index) => (
            <MarkLine key={index} timeline={timeline} mark={mark} index={index} />
          ))}
        </ul>
        <button
          type="button"
          class="button small"
          disabled={isFull}
          data-tip={isFull ? 'There are as many marks as letters' : 'Keep the interval, event or window  M'}
          onClick={() => {
            keepMark(timeline);
          }}
        >
          Keep as mark {isFull ? '' : letterOf(list.length)}
        </button>
      </section>
      <ComparePanel timeline={timeline} scope={scope} />
    </div>
  );
}
