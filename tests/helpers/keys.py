"""Keys of a keyboard, as WebDriver wants them."""

RIGHT, LEFT, UP, DOWN, HOME, END = "\ue014", "\ue012", "\ue013", "\ue015", "\ue011", "\ue010"
TAB, ENTER, SPACE = "\ue004", "\ue007", "\ue00d"
