"""A container image with the Bitfusion client in it: its build context, built and pushed where that can be
done. (Configuration of AI/ML application.)
"""
