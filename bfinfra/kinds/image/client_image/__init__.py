"""A container image with the Bitfusion client: its build context, and the image, built and pushed if that is
possible here. (Configuration of AI/ML application.)
"""
