/** Starts the pages where they are opened without TensorBoard around them. */
import { render } from './index.js';

void render();
